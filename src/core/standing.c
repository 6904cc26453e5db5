/* The names of failures. */
#include "core/standing.h"

const char *poll_error_name(enum poll_error e)
{
    static const char *const names[POLL_ERRORS] = {
        [POLL_ERROR_NETWORK] = "network", [POLL_ERROR_UNREADABLE] = "unreadable",
        [POLL_ERROR_TOKEN] = "token",     [POLL_ERROR_401] = "401",
        [POLL_ERROR_404] = "404",         [POLL_ERROR_409] = "409",
        [POLL_ERROR_429] = "429",         [POLL_ERROR_4XX] = "4xx",
        [POLL_ERROR_5XX] = "5xx",
    };
    return names[e];
}

const char *hook_answer_name(enum hook_answer a)
{
    static const char *const names[HOOK_ANSWERS] = {
        [HOOK_200] = "200", [HOOK_400] = "400", [HOOK_401] = "401", [HOOK_503] = "503"};
    return names[a];
}
