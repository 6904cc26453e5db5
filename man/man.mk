# The list of options in tgspool.yaml.5 is written by `tests/lint/lint --write`, out of the option table; the lint suite
# fails while the two differ.
dist_man_MANS += man/tgspool.1 man/tgspool.yaml.5
