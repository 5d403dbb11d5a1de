/* Compiles Linux's pluggable congestion controls, modules around a struct tcp_congestion_ops, as plug-ins of Gargalo.
 *
 * The names and the meaning of what is here are those that the kernel documents and that papers, RFCs and man pages
 * tell of; the text is Gargalo's own. Only what congestion controls use is here. gargalo_linux.c translates between
 * these functions and gargalo_congestion.h; `gargalo plugin build tcp_mine.c` compiles both.
 *
 * Licence: MIT OR Apache-2.0, at your option. A module keeps its own licence.
 */
#ifndef GARGALO_LINUX_H
#define GARGALO_LINUX_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The kernel whose interface this is, as LINUX_VERSION_CODE has it: decides the arguments of cong_control. */
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#ifndef LINUX_VERSION_CODE
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 12, 0)
#endif

/* --- types --- */

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef s64 ktime_t;
typedef unsigned int gfp_t;

/* --- words of the compiler and of the module loader --- */

#define __read_mostly
#define __init
#define __exit
#define __initdata
#define __user
#define __rcu
#define __percpu
#define __must_check
#define __bpf_kfunc
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#ifndef noinline
#define noinline __attribute__((noinline))
#endif
#define __maybe_unused __attribute__((unused))
#define __always_unused __attribute__((unused))
#define __pure __attribute__((pure))
#ifndef __attribute_const__
#define __attribute_const__ __attribute__((const))
#endif
#define __cold
#define __hot
#define __force
#define __bitwise
#define __visible
#define notrace
#define __aligned(n) __attribute__((aligned(n)))
#define __packed __attribute__((packed))
#define ____cacheline_aligned
#define ____cacheline_aligned_in_smp
#ifndef fallthrough
#define fallthrough __attribute__((fallthrough))
#endif
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define barrier() __asm__ volatile("" ::: "memory")
#define ACCESS_ONCE(x) (x)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define static_assert _Static_assert
#define BIT(n) (1UL << (n))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#ifndef container_of
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#endif

struct module;
extern const char *gargalo_module_description;
#define THIS_MODULE ((struct module *)NULL)
#define MODULE_AUTHOR(text) _Static_assert(1, "")
#define MODULE_LICENSE(text) _Static_assert(1, "")
#define MODULE_DESCRIPTION(text)                                                                                       \
    __attribute__((constructor)) static void gargalo_description(void) { gargalo_module_description = text; }          \
    _Static_assert(1, "")
#define MODULE_VERSION(text) _Static_assert(1, "")
#define MODULE_ALIAS(text) _Static_assert(1, "")
#define MODULE_ALIAS_NET_PF_PROTO(...) _Static_assert(1, "")
#define MODULE_INFO(...) _Static_assert(1, "")
#define EXPORT_SYMBOL(name) _Static_assert(1, "")
#define EXPORT_SYMBOL_GPL(name) _Static_assert(1, "")

/* The module's own functions, and those of modules that it is compiled with; called by gargalo_linux.c. */
void gargalo_module(int (*init)(void));
#define module_init(function)                                                                                          \
    __attribute__((constructor)) static void gargalo_init_##function(void) { gargalo_module(function); }               \
    _Static_assert(1, "")
#define module_exit(function)                                                                                          \
    __attribute__((unused)) static void (*const gargalo_exit_##function)(void) = function
#define late_initcall(function) module_init(function)
#define fs_initcall(function) module_init(function)
#define device_initcall(function) module_init(function)

/* A parameter of a module becomes one of the algorithm. */
enum gargalo_type {
    gargalo_type_bool,
    gargalo_type_byte,
    gargalo_type_short,
    gargalo_type_ushort,
    gargalo_type_int,
    gargalo_type_uint,
    gargalo_type_long,
    gargalo_type_ulong,
    gargalo_type_ullong
};
/* bool is a macro of the C library. */
#define gargalo_type__Bool gargalo_type_bool
void gargalo_module_param(const char *name, void *variable, enum gargalo_type type);
void gargalo_module_param_doc(const char *name, const char *doc);
#define module_param_named(name, variable, type, permissions)                                                          \
    __attribute__((constructor)) static void gargalo_param_##name(void) {                                              \
        gargalo_module_param(#name, &(variable), gargalo_type_##type);                                                 \
    }                                                                                                                  \
    _Static_assert(1, "")
#define module_param(name, type, permissions) module_param_named(name, name, type, permissions)
/* A parameter with functions of its own that check it: `set` refuses a value with an error. */
struct kernel_param {
    const char *name;
    void *arg;
};
struct kernel_param_ops {
    unsigned int flags;
    int (*set)(const char *value, const struct kernel_param *kp);
    int (*get)(char *buffer, const struct kernel_param *kp);
    void (*free)(void *arg);
};
void gargalo_module_param_ops(const char *name, void *variable, const struct kernel_param_ops *ops);
#define module_param_cb(name, ops, variable, permissions)                                                              \
    __attribute__((constructor)) static void gargalo_param_##name(void) {                                              \
        gargalo_module_param_ops(#name, variable, ops);                                                                \
    }                                                                                                                  \
    _Static_assert(1, "")
int param_set_uint(const char *value, const struct kernel_param *kp);
int param_set_uint_minmax(const char *value, const struct kernel_param *kp, unsigned int low, unsigned int high);
int param_get_uint(char *buffer, const struct kernel_param *kp);
#define MODULE_PARM_DESC(name, text)                                                                                   \
    __attribute__((constructor)) static void gargalo_doc_##name(void) { gargalo_module_param_doc(#name, text); }       \
    _Static_assert(1, "")

/* --- numbers --- */

#define min(a, b)                                                                                                      \
    __extension__({                                                                                                    \
        __typeof__(a) gargalo_a = (a);                                                                                 \
        __typeof__(b) gargalo_b = (b);                                                                                 \
        gargalo_a < gargalo_b ? gargalo_a : gargalo_b;                                                                 \
    })
#define max(a, b)                                                                                                      \
    __extension__({                                                                                                    \
        __typeof__(a) gargalo_a = (a);                                                                                 \
        __typeof__(b) gargalo_b = (b);                                                                                 \
        gargalo_a > gargalo_b ? gargalo_a : gargalo_b;                                                                 \
    })
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define min3(a, b, c) min(min(a, b), c)
#define max3(a, b, c) max(max(a, b), c)
#define min_not_zero(a, b) ((a) == 0 ? (b) : (b) == 0 ? (a) : min(a, b))
#define clamp_t(type, value, low, high) min_t(type, max_t(type, value, low), high)
#define clamp(value, low, high) clamp_t(__typeof__(value), value, low, high)
#define clamp_val(value, low, high) clamp_t(__typeof__(value), value, low, high)
#define swap(a, b)                                                                                                     \
    do {                                                                                                               \
        __typeof__(a) gargalo_swapped = (a);                                                                           \
        (a) = (b);                                                                                                     \
        (b) = gargalo_swapped;                                                                                         \
    } while (0)
#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))
#define DIV_ROUND_UP_ULL(n, d) DIV_ROUND_UP((u64)(n), (u64)(d))
#define round_up(n, multiple) (DIV_ROUND_UP(n, multiple) * (multiple))
#define abs(n) ((n) < 0 ? -(n) : (n))
#define U8_C UINT8_C
#define U16_C UINT16_C
#define U32_C UINT32_C
#define U64_C UINT64_C
#define U8_MAX UINT8_MAX
#define U16_MAX UINT16_MAX
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX
#define S8_MAX INT8_MAX
#define S8_MIN INT8_MIN
#define S16_MAX INT16_MAX
#define S16_MIN INT16_MIN
#define S32_MAX INT32_MAX
#define S32_MIN INT32_MIN
#define S64_MAX INT64_MAX
#define S64_MIN INT64_MIN
#define BITS_PER_BYTE 8
#define BITS_PER_TYPE(type) (sizeof(type) * BITS_PER_BYTE)
#define BIT_ULL(n) (1ULL << (n))
#define GENMASK(high, low) ((~0UL << (low)) & (~0UL >> (63 - (high))))

/* Divides a 64-bit variable in place; the value is the remainder. */
#define do_div(n, divisor)                                                                                             \
    __extension__({                                                                                                    \
        u32 gargalo_divisor = (divisor);                                                                               \
        u32 gargalo_remainder = (u32)((n) % gargalo_divisor);                                                          \
        (n) /= gargalo_divisor;                                                                                        \
        gargalo_remainder;                                                                                             \
    })
static inline u64 div_u64(u64 n, u32 divisor) { return n / divisor; }
static inline s64 div_s64(s64 n, s32 divisor) { return n / divisor; }
static inline u64 div64_u64(u64 n, u64 divisor) { return n / divisor; }
static inline u64 div_u64_rem(u64 n, u32 divisor, u32 *remainder) {
    *remainder = (u32)(n % divisor);
    return n / divisor;
}
#define DIV_ROUND_CLOSEST(n, d)                                                                                        \
    __extension__({                                                                                                    \
        __typeof__(n) gargalo_n = (n);                                                                                 \
        __typeof__(d) gargalo_d = (d);                                                                                 \
        (gargalo_n < 0) == (gargalo_d < 0) ? (gargalo_n + gargalo_d / 2) / gargalo_d                                   \
                                           : (gargalo_n - gargalo_d / 2) / gargalo_d;                                  \
    })
static inline bool is_power_of_2(unsigned long n) { return n != 0 && (n & (n - 1)) == 0; }
static inline u64 mul_u32_u32(u32 a, u32 b) { return (u64)a * b; }
static inline s64 div64_s64(s64 n, s64 divisor) { return n / divisor; }
#define div64_long(n, divisor) div64_s64(n, divisor)
#define div64_ul(n, divisor) div64_u64(n, divisor)
static inline u64 mul_u64_u32_shr(u64 a, u32 factor, unsigned int shift) {
    __extension__ typedef unsigned __int128 wide;
    return (u64)(((wide)a * factor) >> shift);
}
/* The number of the highest bit that is set, from 1; 0 if none is. */
static inline int fls(u32 n) { return n == 0 ? 0 : 32 - __builtin_clz(n); }
static inline int fls64(u64 n) { return n == 0 ? 0 : 64 - __builtin_clzll(n); }
static inline int ilog2(u64 n) { return fls64(n) - 1; }
static inline unsigned long int_sqrt(unsigned long n) {
    unsigned long root = 0;
    for (unsigned long bit = 1UL << 31; bit > 0; bit >>= 1) {
        if ((root + bit) <= n / (root + bit)) {
            root += bit;
        }
    }
    return root;
}
#define cmpxchg(pointer, old, new)                                                                                     \
    __extension__({                                                                                                    \
        __typeof__(*(pointer)) gargalo_was = *(pointer);                                                               \
        if (gargalo_was == (old)) {                                                                                    \
            *(pointer) = (new);                                                                                        \
        }                                                                                                              \
        gargalo_was;                                                                                                   \
    })

/* --- time and chance: of the call under way --- */

#define HZ 1000
#define MSEC_PER_SEC 1000L
#define USEC_PER_MSEC 1000L
#define USEC_PER_SEC 1000000L
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define TCP_TS_HZ 1000
#define USEC_PER_JIFFY (USEC_PER_SEC / HZ)

struct gargalo_memory;
struct gargalo_call {
    /* Of a machine that has been running for some minutes: a time of 0 stands for none in many modules. */
    u64 now_ns;
    u64 (*random)(void *context);
    void *context;
    /* Where what the call allocates belongs to; NULL while the module is loaded. */
    struct gargalo_memory **memory;
};
extern _Thread_local struct gargalo_call gargalo_call;

#define jiffies ((unsigned long)(gargalo_call.now_ns / (NSEC_PER_SEC / HZ)))
#define tcp_jiffies32 ((u32)jiffies)
#if LINUX_VERSION_CODE >= KERNEL_VERSION(4, 13, 0)
#define tcp_time_stamp(tp) ((void)(tp), tcp_jiffies32)
#define tcp_time_stamp_ts(tp) tcp_time_stamp(tp)
#define tcp_time_stamp_ms(tp) tcp_time_stamp(tp)
#else
#define tcp_time_stamp tcp_jiffies32
#endif
static inline unsigned long msecs_to_jiffies(unsigned int ms) { return (unsigned long)ms * HZ / MSEC_PER_SEC; }
static inline unsigned long usecs_to_jiffies(unsigned int us) {
    return DIV_ROUND_UP((unsigned long)us, (unsigned long)USEC_PER_JIFFY);
}
static inline unsigned int jiffies_to_msecs(unsigned long j) { return (unsigned int)(j * MSEC_PER_SEC / HZ); }
static inline unsigned int jiffies_to_usecs(unsigned long j) { return (unsigned int)(j * USEC_PER_JIFFY); }
static inline u64 local_clock(void) { return gargalo_call.now_ns; }
static inline u64 ktime_get_ns(void) { return gargalo_call.now_ns; }
static inline ktime_t ktime_get(void) { return (ktime_t)gargalo_call.now_ns; }
#define ktime_get_real ktime_get
static inline s64 ktime_to_us(ktime_t t) { return t / NSEC_PER_USEC; }
static inline s64 ktime_to_ns(ktime_t t) { return t; }
static inline s64 ktime_us_delta(ktime_t later, ktime_t earlier) { return (later - earlier) / NSEC_PER_USEC; }
static inline u64 tcp_clock_ns(void) { return gargalo_call.now_ns; }
static inline u64 tcp_clock_us(void) { return gargalo_call.now_ns / NSEC_PER_USEC; }
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_after32(a, b) ((s32)((u32)(b) - (u32)(a)) < 0)
#define time_before32(a, b) time_after32(b, a)

static inline u32 get_random_u32(void) { return (u32)(gargalo_call.random(gargalo_call.context) >> 32); }
static inline u32 get_random_u32_below(u32 end) { return (u32)(((u64)get_random_u32() * end) >> 32); }
static inline u32 get_random_u32_inclusive(u32 from, u32 to) { return from + get_random_u32_below(to - from + 1); }
static inline void get_random_bytes(void *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        ((u8 *)bytes)[i] = (u8)get_random_u32();
    }
}
#define prandom_u32() get_random_u32()
#define prandom_u32_max(end) get_random_u32_below(end)

/* --- memory: what a connection has not freed is freed at its end --- */

#define GFP_KERNEL 0u
#define GFP_ATOMIC 0u
#define GFP_NOWAIT 0u
#define __GFP_NOWARN 0u
#define __GFP_ZERO 0u
void *kcalloc(size_t count, size_t size, gfp_t flags);
void kfree(const void *memory);
static inline void *kmalloc(size_t size, gfp_t flags) { return kcalloc(1, size, flags); }
static inline void *kzalloc(size_t size, gfp_t flags) { return kcalloc(1, size, flags); }
#define kmalloc_array(count, size, flags) kcalloc(count, size, flags)
#define kvmalloc kmalloc
#define kvzalloc kzalloc
#define kvfree kfree

/* --- messages: warnings and errors to standard error, all with -DGARGALO_VERBOSE --- */

#define KERN_SOH "\001"
#define KERN_ERR KERN_SOH "3"
#define KERN_WARNING KERN_SOH "4"
#define KERN_NOTICE KERN_SOH "5"
#define KERN_INFO KERN_SOH "6"
#define KERN_DEBUG KERN_SOH "7"
#define KERN_CONT KERN_SOH "7"
#ifdef GARGALO_VERBOSE
#define GARGALO_LOUDEST '7'
#else
#define GARGALO_LOUDEST '4'
#endif
#define printk(...) gargalo_printk(GARGALO_LOUDEST, __VA_ARGS__)
__attribute__((format(printf, 2, 3))) void gargalo_printk(char loudest, const char *format, ...);
#ifndef pr_fmt
#define pr_fmt(format) format
#endif
#define pr_err(format, ...) printk(KERN_ERR pr_fmt(format), ##__VA_ARGS__)
#define pr_warn(format, ...) printk(KERN_WARNING pr_fmt(format), ##__VA_ARGS__)
#define pr_notice(format, ...) printk(KERN_NOTICE pr_fmt(format), ##__VA_ARGS__)
#define pr_info(format, ...) printk(KERN_INFO pr_fmt(format), ##__VA_ARGS__)
#define pr_debug(format, ...) printk(KERN_DEBUG pr_fmt(format), ##__VA_ARGS__)
#define pr_info_once(...) ((void)0)
#define pr_warn_once(...) ((void)0)
#define pr_info_ratelimited(...) ((void)0)
#define pr_warn_ratelimited(...) ((void)0)
#define BUG() __builtin_trap()
#define net_dbg_ratelimited(...) ((void)0)
#define WARN_ON(condition) __extension__({ int gargalo_is = !!(condition); gargalo_is; })
#define WARN_ON_ONCE(condition) WARN_ON(condition)
#define WARN_ONCE(condition, ...) WARN_ON(condition)
#define BUG_ON(condition)                                                                                              \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            __builtin_trap();                                                                                          \
        }                                                                                                              \
    } while (0)

/* --- windowed extrema --- */

struct minmax_sample {
    u32 t;
    u32 v;
};
struct minmax {
    struct minmax_sample s[3];
};
static inline u32 minmax_get(const struct minmax *m) { return m->s[0].v; }
u32 minmax_reset(struct minmax *m, u32 t, u32 measured);
u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 measured);
u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 measured);

/* --- the connection --- */

struct sk_buff;

/* Where the kernel says how a socket paces. */
enum sk_pacing { SK_PACING_NONE = 0, SK_PACING_NEEDED = 1, SK_PACING_FQ = 2 };
#define GSO_LEGACY_MAX_SIZE 65536u
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 19, 0)
#define GSO_MAX_SIZE (8 * GSO_LEGACY_MAX_SIZE)
#else
#define GSO_MAX_SIZE GSO_LEGACY_MAX_SIZE
#endif
#define MAX_TCP_HEADER 320

struct sock {
    /* Bytes per second. */
    unsigned long sk_pacing_rate;
    unsigned long sk_max_pacing_rate;
    u32 sk_pacing_status;
    u8 sk_pacing_shift;
    unsigned int sk_gso_max_size;
    u16 sk_gso_max_segs;
    int sk_sndbuf;
    int sk_wmem_queued;
    u8 sk_state;
};
/* States of a connection; a module sees an established one. */
enum {
    TCP_ESTABLISHED = 1,
    TCP_SYN_SENT,
    TCP_SYN_RECV,
    TCP_FIN_WAIT1,
    TCP_FIN_WAIT2,
    TCP_TIME_WAIT,
    TCP_CLOSE,
    TCP_CLOSE_WAIT,
    TCP_LAST_ACK,
    TCP_LISTEN,
    TCP_CLOSING,
    TCP_NEW_SYN_RECV
};
static inline void sk_pacing_shift_update(struct sock *sk, int shift) { sk->sk_pacing_shift = (u8)shift; }

/* The states of loss recovery, and the events of a congestion control. */
enum tcp_ca_state { TCP_CA_Open = 0, TCP_CA_Disorder = 1, TCP_CA_CWR = 2, TCP_CA_Recovery = 3, TCP_CA_Loss = 4 };
#define TCPF_CA_Open (1 << TCP_CA_Open)
#define TCPF_CA_Disorder (1 << TCP_CA_Disorder)
#define TCPF_CA_CWR (1 << TCP_CA_CWR)
#define TCPF_CA_Recovery (1 << TCP_CA_Recovery)
#define TCPF_CA_Loss (1 << TCP_CA_Loss)
enum tcp_ca_event {
    CA_EVENT_TX_START,
    CA_EVENT_CWND_RESTART,
    CA_EVENT_COMPLETE_CWR,
    CA_EVENT_LOSS,
    CA_EVENT_ECN_NO_CE,
    CA_EVENT_ECN_IS_CE,
    CA_EVENT_DELAYED_ACK,
    CA_EVENT_NON_DELAYED_ACK,
    /* Of BBRv3's kernel: a tail loss probe has repaired a loss. */
    CA_EVENT_TLP_RECOVERY
};
enum tcp_ca_ack_event_flags { CA_ACK_SLOWPATH = 1, CA_ACK_WIN_UPDATE = 2, CA_ACK_ECE = 4 };
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN 2
#define TCP_CONG_NEEDS_ACCECN 4
#define TCP_CONG_WANTS_CE_EVENTS 0x100
#define TCP_CA_NAME_MAX 16
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define TCP_ECN_OK 1
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_ECN_SEEN 8
/* Of BBRv3's kernel: marks tell of a short queue. Never set. */
#define TCP_ECN_LOW 16
#define TCP_ECN_ECT_PERMANENT 32

struct tcp_congestion_ops;
/* As the kernel has it; -DICSK_CA_PRIV_SIZE=144 for a module of a kernel with more. */
#ifndef ICSK_CA_PRIV_SIZE
#define ICSK_CA_PRIV_SIZE (13 * sizeof(u64))
#endif

struct inet_connection_sock {
    struct sock icsk_inet;
    const struct tcp_congestion_ops *icsk_ca_ops;
    u8 icsk_ca_state;
    u8 icsk_ca_initialized;
    u8 icsk_ca_setsockopt;
    u8 icsk_retransmits;
    u32 icsk_rto;
    struct gargalo_ack {
        /* Of the receiver, whose events do not come. */
        u8 pending;
        u8 quick;
        u16 rcv_mss;
    } icsk_ack;
    u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / sizeof(u64)];
    /* Stays 0, unless a module's state is larger than that. */
    u64 gargalo_guard[32];
};

enum { ICSK_ACK_SCHED = 1, ICSK_ACK_TIMER = 2, ICSK_ACK_PUSHED = 4, ICSK_ACK_PUSHED2 = 8, ICSK_ACK_NOW = 16 };

/* Timestamps of the latest acknowledgement, in milliseconds. That of the receiver is taken to be the time at which the
 * acknowledgement arrives: the way back has no queue. */
struct tcp_options_received {
    u32 rcv_tsval;
    u32 rcv_tsecr;
    bool saw_tstamp;
};

/* Counts are packets, times of samples microseconds; sequence numbers count bytes from 0. */
struct tcp_sock {
    struct inet_connection_sock inet_conn;
    u32 mss_cache;
    u32 advmss;
    u32 snd_cwnd;
    u32 snd_cwnd_cnt;
    u32 snd_cwnd_clamp;
    u32 snd_cwnd_used;
    u32 snd_cwnd_stamp;
    u32 snd_ssthresh;
    u32 prior_cwnd;
    u32 prior_ssthresh;
    u32 undo_marker;
    u32 undo_retrans;
    u32 high_seq;
    u32 snd_una;
    u32 snd_nxt;
    u32 write_seq;
    u32 rcv_nxt;
    /* Smoothed round-trip time times 8, and its mean deviation times 4. */
    u32 srtt_us;
    u32 mdev_us;
    u32 rttvar_us;
    struct minmax rtt_min;
    u32 packets_out;
    u32 sacked_out;
    u32 lost_out;
    u32 retrans_out;
    u32 max_packets_out;
    u32 cwnd_usage_seq;
    u32 delivered;
    u32 delivered_ce;
    u32 lost;
    /* Not 0: limited by the application. */
    u32 app_limited;
    u64 tcp_mstamp;
    u64 tcp_clock_cache;
    u64 tcp_wstamp_ns;
    u64 first_tx_mstamp;
    u64 delivered_mstamp;
    u64 bytes_acked;
    u64 bytes_sent;
    u32 segs_out;
    u32 data_segs_out;
    u32 prr_delivered;
    u32 prr_out;
    struct tcp_options_received rx_opt;
    u32 rate_delivered;
    u32 rate_interval_us;
    u32 lsndtime;
    u32 reordering;
    u32 total_retrans;
    u8 ecn_flags;
    u8 fast_ack_mode;
    u8 tlp_orig_data_app_limited : 1;
    u8 is_cwnd_limited : 1;
    u8 is_sack_reneg : 1;
    u8 rate_app_limited : 1;
    u8 thin_lto : 1;
};

static inline struct tcp_sock *tcp_sk(const struct sock *sk) { return (struct tcp_sock *)sk; }
static inline struct inet_connection_sock *inet_csk(const struct sock *sk) {
    return (struct inet_connection_sock *)sk;
}
static inline void *inet_csk_ca(const struct sock *sk) { return inet_csk(sk)->icsk_ca_priv; }

struct ack_sample {
    u32 pkts_acked;
    /* -1: no sample. */
    s32 rtt_us;
    /* Bytes delivered while the newest acknowledged packet was on its way. */
    u32 in_flight;
};

struct rate_sample {
    u64 prior_mstamp;
    u32 prior_delivered;
    u32 prior_delivered_ce;
    s32 delivered;
    s32 delivered_ce;
    /* -1: no sample. */
    long interval_us;
    u32 snd_interval_us;
    u32 rcv_interval_us;
    long rtt_us;
    int losses;
    u32 acked_sacked;
    u32 prior_in_flight;
    u32 last_end_seq;
    bool is_app_limited;
    bool is_retrans;
    bool is_ack_delayed;
    bool is_ece;
    /* Of BBRv3's kernel: lost in the interval, and in flight when its newest packet was sent, that one included. */
    s32 lost;
    u32 tx_in_flight;
    bool is_acking_tlp_retrans_seq;
};

/* A packet that was marked lost, for skb_marked_lost(); nothing else is told of single packets. */
struct tcp_skb_cb {
    u32 seq;
    u32 end_seq;
    u8 sacked;
    struct {
        u32 in_flight;
        u32 lost;
        u32 delivered;
        u64 delivered_mstamp;
        u64 first_tx_mstamp;
        bool is_app_limited;
    } tx;
};
struct sk_buff {
    struct tcp_skb_cb cb;
    u32 len;
    u32 segments;
};
#define TCP_SKB_CB(skb) ((struct tcp_skb_cb *)&(skb)->cb)
static inline u32 tcp_skb_pcount(const struct sk_buff *skb) { return skb->segments; }
static inline bool tcp_skb_tx_in_flight_is_suspicious(u32 packets, u32 sacked, u32 tx_in_flight) {
    return sacked == 0 && packets > tx_in_flight;
}

/* What modules tell `ss -i`; taken, and not used. */
struct tcpvegas_info {
    u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
};
struct tcp_dctcp_info {
    u16 dctcp_enabled, dctcp_ce_state;
    u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot;
};
struct tcp_bbr_info {
    u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
    /* Of BBRv3. */
    u32 bbr_bw_hi_lsb, bbr_bw_hi_msb, bbr_bw_lo_lsb, bbr_bw_lo_msb;
    u8 bbr_mode, bbr_phase, unused1, bbr_version;
    u32 bbr_inflight_lo, bbr_inflight_hi, bbr_extra_acked;
};
enum tcp_bbr_phase {
    BBR_PHASE_INVALID,
    BBR_PHASE_STARTUP,
    BBR_PHASE_DRAIN,
    BBR_PHASE_PROBE_RTT,
    BBR_PHASE_PROBE_BW_UP,
    BBR_PHASE_PROBE_BW_DOWN,
    BBR_PHASE_PROBE_BW_CRUISE,
    BBR_PHASE_PROBE_BW_REFILL
};
union tcp_cc_info {
    struct tcpvegas_info vegas;
    struct tcp_dctcp_info dctcp;
    struct tcp_bbr_info bbr;
};
enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_DCTCPINFO = 9, INET_DIAG_BBRINFO = 16 };

struct tcp_congestion_ops {
    /* Needed: the threshold after a loss, in packets. */
    u32 (*ssthresh)(struct sock *sk);
    /* Needed, unless there is cong_control: grows the window. */
    void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
    void (*set_state)(struct sock *sk, u8 new_state);
    void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
    void (*in_ack_event)(struct sock *sk, u32 flags);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(4, 7, 0)
    void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
#else
    void (*pkts_acked)(struct sock *sk, u32 acked, s32 rtt_us);
#endif
    u32 (*min_tso_segs)(struct sock *sk);
    /* Some kernels have one of these in its place: packets of a burst. */
    u32 (*tso_segs_goal)(struct sock *sk);
    u32 (*tso_segs)(struct sock *sk, unsigned int mss_now);
    /* Of BBRv3's kernel: a packet was marked lost. */
    void (*skb_marked_lost)(struct sock *sk, const struct sk_buff *skb);
    /* Sets window and pacing rate itself, after each acknowledgement. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
    void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
#else
    void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
#endif
    /* Needed: the window after an event that was spurious. */
    u32 (*undo_cwnd)(struct sock *sk);
    u32 (*sndbuf_expand)(struct sock *sk);
    size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);
    char name[TCP_CA_NAME_MAX];
    struct module *owner;
    u32 key;
    u32 flags;
    void (*init)(struct sock *sk);
    void (*release)(struct sock *sk);
};

int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
static inline void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops) { (void)ops; }

/* --- what the kernel's TCP offers to modules --- */

#define before(a, b) ((s32)((u32)(a) - (u32)(b)) < 0)
#define after(a, b) before(b, a)
#define between(n, low, high) ((u32)(high) - (u32)(low) >= (u32)(n) - (u32)(low))

static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp) { return tp->snd_cwnd; }
static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 packets) { tp->snd_cwnd = packets; }
static inline bool tcp_in_slow_start(const struct tcp_sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }
static inline bool tcp_in_initial_slowstart(const struct tcp_sock *tp) {
    return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH;
}
static inline u32 tcp_left_out(const struct tcp_sock *tp) { return tp->sacked_out + tp->lost_out; }
static inline u32 tcp_packets_in_flight(const struct tcp_sock *tp) {
    return tp->packets_out - tcp_left_out(tp) + tp->retrans_out;
}
static inline u32 tcp_min_rtt(const struct tcp_sock *tp) { return minmax_get(&tp->rtt_min); }
static inline u32 tcp_stamp_us_delta(u64 later, u64 earlier) {
    return later > earlier ? (u32)(later - earlier) : 0;
}
static inline int tcp_mss_to_mtu(const struct sock *sk, int mss) {
    (void)sk;
    return mss + 52; /* headers of IPv4 and TCP with timestamps */
}
static inline bool tcp_ca_needs_ecn(const struct sock *sk) {
    return inet_csk(sk)->icsk_ca_ops->flags & TCP_CONG_NEEDS_ECN;
}
static inline bool tcp_in_cwnd_reduction(const struct sock *sk) {
    return (1 << inet_csk(sk)->icsk_ca_state) & (TCPF_CA_CWR | TCPF_CA_Recovery);
}
u32 tcp_current_ssthresh(const struct sock *sk);
/* Whether the window is what limits the sender. */
bool tcp_is_cwnd_limited(const struct sock *sk);
/* Grows by one packet for each acknowledged; returns those left when the threshold is reached. */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
/* Grows by one packet for `w` acknowledged. */
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
u32 tcp_reno_undo_cwnd(struct sock *sk);
extern struct tcp_congestion_ops tcp_reno;
/* Begins a reduction to ssthresh() over a round trip, as for a mark. */
void tcp_enter_cwr(struct sock *sk);
/* Packets of a burst of about a millisecond at the pacing rate. */
u32 tcp_tso_autosize(const struct sock *sk, unsigned int mss_now, int min_tso_segs);
static inline bool tcp_needs_internal_pacing(const struct sock *sk) {
    return sk->sk_pacing_status == SK_PACING_NEEDED;
}

/* --- what has no effect here: the receiver's part, counters of the host, choice of paths --- */

struct netns_ipv4 {
    u8 sysctl_tcp_min_tso_segs;
    u8 sysctl_tcp_plb_enabled;
};
struct net {
    struct netns_ipv4 ipv4;
};
extern struct net gargalo_net;
static inline struct net *sock_net(const struct sock *sk) {
    (void)sk;
    return &gargalo_net;
}
#define NET_INC_STATS(net, counter) ((void)(net))
#define NET_ADD_STATS(net, counter, n) ((void)(net))
#define NET_INC_STATS_BH(net, counter) ((void)(net))
#define NET_ADD_STATS_BH(net, counter, n) ((void)(net))
#define __tcp_send_ack(...) ((void)0)
#define tcp_send_ack(sk) ((void)(sk))
#define tcp_enter_quickack_mode(...) ((void)0)
#define INET_ECN_xmit(sk) ((void)(sk))
#define INET_ECN_dontxmit(sk) ((void)(sk))
#define TCP_PLB_SCALE 8
struct tcp_plb_state {
    u8 consec_cong_rounds;
    u32 pause_until;
};
#define tcp_plb_init(sk, plb) ((void)(sk), (void)(plb))
#define tcp_plb_update_state(sk, plb, ratio) ((void)(sk), (void)(plb), (void)(ratio))
#define tcp_plb_check_rehash(sk, plb) ((void)(sk), (void)(plb))
#define tcp_plb_update_state_upon_rto(sk, plb) ((void)(sk), (void)(plb))
/* No programs are attached to sockets: -1 is their answer. */
#define BPF_SOCK_OPS_BASE_RTT 7
#define tcp_call_bpf(sk, ...) ((void)(sk), -1)

/* Registration with the kernel's BPF, which is not there. */
struct btf_kfunc_id_set {
    struct module *owner;
    const void *set;
};
#define BTF_KFUNCS_START(name) static const char name[] = "";
#define BTF_KFUNCS_END(name)
#define BTF_SET8_START(name) static const char name[] = "";
#define BTF_SET8_END(name)
#define BTF_ID_FLAGS(...)
#define BPF_PROG_TYPE_STRUCT_OPS 0
static inline int register_btf_kfunc_id_set(int type, const struct btf_kfunc_id_set *set) {
    (void)type;
    (void)set;
    return 0;
}

#endif
