# What the scripts beside this file share: POSIX sh, curl, and what coreutils have. Sourced, not run.
#
# An alert is one line of JSON. Its texts are taken out as they stand, still escaped, and are put into other JSON like
# that: nothing in a message can end a string. No secret is in the arguments of a process: curl reads the URL and headers
# from a descriptor.
set -eu
umask 077

alert_die() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

# The text of a member of the alert as it stands in the JSON, without its quotes; nothing for null.
alert_member() {
    printf '%s\n' "$alert" | sed -nE 's/.*[{,]"'"$1"'": ?"(([^"\\]|\\.)*)".*/\1/p'
}

# What a JSON text says, on one line.
alert_plain() {
    printf '%s\n' "$1" | awk '{
        out = ""
        while (match($0, /\\(u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]|.)/)) {
            c = substr($0, RSTART + 1, 1)
            out = out substr($0, 1, RSTART - 1) (c == "u" ? "?" : index("nrtbf", c) ? " " : c)
            $0 = substr($0, RSTART + RLENGTH)
        }
        print out $0
    }'
}

# alert_read ENV-FILE: reads the settings and the alert. Sets title (plain, of ASCII), message and next (still escaped),
# and state.
alert_read() {
    [ $# -eq 1 ] || alert_die "usage: ${0##*/} FILE, with the settings of the script's head"
    [ -f "$1" ] || alert_die "there is no file $1"
    [ "$(ls -ldL -- "$1" | cut -c 5-10)" = ------ ] || alert_die "others can read $1; run: chmod 600 $1"
    case $1 in
    */*) . "$1" ;;
    *) . "./$1" ;;
    esac
    IFS= read -r alert || [ -n "$alert" ] || alert_die "there is no alert on standard input"
    state=$(alert_member state)
    message=$(alert_member message)
    next=$(alert_member next)
    [ -n "$message" ] || alert_die "what is on standard input is no alert of tgspool"
    bot=$(alert_member bot)
    title="[$([ "$state" = over ] && echo over || echo alert)] tgspool $(alert_member alert)${bot:+, bot $bot}"
}

# alert_need NAME...: settings that must be there.
alert_need() {
    for name; do
        eval "[ -n \"\${$name:-}\" ]" || alert_die "the file of settings lacks $name"
    done
}

# All of the alert as the inside of a JSON string.
alert_json_text() {
    printf '%s\\n%s\\nnext: %s' "$title" "$message" "$next"
}

# All of it as lines.
alert_lines() {
    printf '%s\n\nnext: %s\n' "$(alert_plain "$message")" "$(alert_plain "$next")"
}

# A line of curl's file of options.
alert_option() {
    printf '%s = "%s"\n' "$1" "$(printf '%s' "$2" | sed 's/[\\"]/\\&/g')"
}

# alert_post URL [HEADER...]: POSTs standard input; prints the answer. Fails where that is no 2xx.
alert_post() {
    options=$(
        alert_option url "$1"
        shift
        for header; do
            alert_option header "$header"
        done
    )
    curl --silent --show-error --fail --max-time 20 --config /dev/fd/3 --data-binary @- 3<<EOF
$options
EOF
}

# alert_post_json URL PATTERN: the same with JSON; the answer must hold what the extended regular expression says.
alert_post_json() {
    answer=$(alert_post "$1" 'Content-Type: application/json')
    printf '%s\n' "$answer" | grep -Eq "$2" || alert_die "it was refused: $answer"
}

# HMAC-SHA256 (RFC 2104) of standard input by the key $1, in base64. Made of sha256sum, as openssl takes a key only as an
# argument, which others can see.
alert_hmac() {
    key=$(printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n')
    [ ${#key} -le 128 ] || key=$(printf '%s' "$1" | sha256sum | cut -c 1-64)
    while [ ${#key} -lt 128 ]; do
        key=${key}00
    done
    inner=$({
        alert_padded 54
        cat
    } | sha256sum | cut -c 1-64)
    {
        alert_padded 92
        alert_bytes "$inner"
    } | sha256sum | cut -c 1-64 | { read -r hex && alert_bytes "$hex"; } | base64
}

# The bytes of a text of hex digits.
alert_bytes() {
    hex=$1
    while [ -n "$hex" ]; do
        rest=${hex#??}
        printf "\\$(printf %03o "0x${hex%"$rest"}")"
        hex=$rest
    done
}

# The key, each of its bytes changed by a number.
alert_padded() {
    left=$key
    while [ -n "$left" ]; do
        rest=${left#??}
        printf "\\$(printf %03o $((0x${left%"$rest"} ^ $1)))"
        left=$rest
    done
}
