/* A congestion control as Linux has them: Reno that keeps more of its window after a loss.
 *
 * gargalo plugin build linux.c -o mine.so
 * gargalo run race.toml --plugin mine.so --set 'flows.0.transport.tcp.congestion="mine-linux"'
 */
#include <linux/module.h>
#include <net/tcp.h>

static int kept __read_mostly = 512;
module_param(kept, int, 0644);
MODULE_PARM_DESC(kept, "window kept after a loss, in parts of 1024");

static u32 mine_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return max(tcp_snd_cwnd(tp) * kept / 1024, 2U);
}

static struct tcp_congestion_ops mine __read_mostly = {
	.ssthresh = mine_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "mine-linux",
};

static int __init mine_register(void)
{
	return tcp_register_congestion_control(&mine);
}

static void __exit mine_unregister(void)
{
	tcp_unregister_congestion_control(&mine);
}

module_init(mine_register);
module_exit(mine_unregister);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Reno with a choice of what a loss costs");
