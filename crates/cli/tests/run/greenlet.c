// What greenlet does to a stack: a function of its library calls on while its own return address leads nowhere.
#include "pair.h"
#include <dlfcn.h>

#ifdef LIBRARY
void begin(void (*run)(void)) {
    void *volatile *address = (void *volatile *)__builtin_frame_address(0) + 1;
    void *kept = *address;
    *address = (void *)1;
    run();
    *address = kept;
}
#else
static struct pair pair;

static void running(void) {
    CHECK(send(pair.client, "hello ", 6, 0) == 6);
    CHECK(send(pair.client, "world", 5, 0) == 5);
    take(pair.server, 11);
}

int main(int count, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW);
    CHECK(library);
    void (*begin)(void (*)(void)) = dlsym(library, "begin");
    pair = connected();
    begin(running);
    return 0;
}
#endif
