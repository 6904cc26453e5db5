/* A main() for a fuzz target where libFuzzer is not: runs the target on every file that is named, and on every file of a
 * directory that is named, so that `make check` replays the corpus. */
#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "fuzz.h"

static size_t passed;

/* Runs one file; the copy is of its exact size, so that a read beyond it is seen. */
static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;

    if (!f || fstat(fileno(f), &st) < 0) {
        perror(path);
        return -1;
    }
    uint8_t *data = malloc((size_t)st.st_size ? (size_t)st.st_size : 1);
    size_t n = data ? fread(data, 1, (size_t)st.st_size, f) : 0;
    fclose(f);
    if (!data || n != (size_t)st.st_size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        free(data);
        return -1;
    }
    fprintf(stderr, "%s\n", path); /* the last one printed is the one that crashed */
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    passed++;
    return 0;
}

static int replay_dir(const char *path)
{
    DIR *d = opendir(path);
    int r = 0;

    if (!d) {
        perror(path);
        return -1;
    }
    for (struct dirent *e; (e = readdir(d));) {
        char name[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        if (replay_file(name) < 0)
            r = -1;
    }
    closedir(d);
    return r;
}

int main(int argc, char **argv)
{
    int rc = 0;

    for (int i = 1; i < argc; i++) {
        struct stat st;
        bool dir = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);
        if ((dir ? replay_dir(argv[i]) : replay_file(argv[i])) < 0)
            rc = 1;
    }
    printf("%zu passed\n", passed);
    return passed ? rc : 1;
}
