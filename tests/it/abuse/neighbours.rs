//! What each attack costs a victim: the victim's latency beside the attack over its latency alone.
