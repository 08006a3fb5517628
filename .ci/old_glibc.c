// old_glibc.c -- binds the functions that got a new version after glibc 2.28 to their first version.
// A wheel that is linked on a newer system with --wrap for each name below then fits manylinux_2_28.
#include <pthread.h>
#include <sched.h>

#ifdef __x86_64__
#define FIRST "GLIBC_2.2.5"
#define AFFINITY "GLIBC_2.3.4"
#else
#define FIRST "GLIBC_2.17"
#define AFFINITY "GLIBC_2.17"
#endif
#define BIND(name, version) __asm__(".symver old_" #name "," #name "@" version)

BIND(exp, FIRST);
double old_exp(double);
double __wrap_exp(double x) { return old_exp(x); }

BIND(log, FIRST);
double old_log(double);
double __wrap_log(double x) { return old_log(x); }

BIND(hypot, FIRST);
double old_hypot(double, double);
double __wrap_hypot(double x, double y) { return old_hypot(x, y); }

BIND(pthread_create, FIRST);
int old_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* data) {
    return old_pthread_create(thread, attributes, run, data);
}

BIND(pthread_join, FIRST);
int old_pthread_join(pthread_t, void**);
int __wrap_pthread_join(pthread_t thread, void** result) { return old_pthread_join(thread, result); }

BIND(pthread_attr_setaffinity_np, AFFINITY);
int old_pthread_attr_setaffinity_np(pthread_attr_t*, size_t, const cpu_set_t*);
int __wrap_pthread_attr_setaffinity_np(pthread_attr_t* attributes, size_t size, const cpu_set_t* cores) {
    return old_pthread_attr_setaffinity_np(attributes, size, cores);
}

// libstdc++ leaves atomics out where this is not 0; glibc has it since 2.32
char __wrap___libc_single_threaded = 0;
