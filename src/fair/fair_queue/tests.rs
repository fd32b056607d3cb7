use std::future::Future;
use std::pin::Pin;

use futures_util::FutureExt;

use super::*;

const LIMITS: FairQueueLimits = FairQueueLimits {
    slots: 2,
    slots_per_consumer: 2,
    waiting_per_consumer: 8,
    waiting: 12,
    max_wait: None,
};

type Waiting<'q> = Pin<Box<dyn Future<Output = Result<Slot, QueueFull>> + 'q>>;

fn user(id: u64) -> Consumer {
    Consumer::User(id)
}

/// Requests a slot once.
fn ask(queue: &FairQueue, id: u64) -> Result<Option<Slot>, QueueFull> {
    queue.acquire(user(id)).now_or_never().transpose()
}

fn wait(queue: &FairQueue, id: u64) -> Waiting<'_> {
    let mut waiting: Waiting<'_> = Box::pin(queue.acquire(user(id)));
    assert!(waiting.as_mut().now_or_never().is_none(), "the request should wait");
    waiting
}

fn slot(waiting: &mut Waiting<'_>) -> Option<Slot> {
    waiting.as_mut().now_or_never().map(|slot| slot.expect("slot"))
}

#[test]
fn consumers_with_many_requests_do_not_starve_others() {
    let queue = FairQueue::new(LIMITS);
    let (first, second) = (ask(&queue, 1).unwrap().unwrap(), ask(&queue, 1).unwrap().unwrap());
    let mut greedy: Vec<_> = (0..6).map(|_| wait(&queue, 1)).collect();
    let mut modest = wait(&queue, 2);
    drop(first);
    let victim = slot(&mut modest).expect("the next slot goes to the consumer without one");
    drop(second);
    assert!(slot(&mut greedy[0]).is_some());
    let _waits_again = wait(&queue, 2);
    drop(victim);
    assert!(slot(&mut greedy[1]).is_some(), "consumer 1 is next in line");
}

#[test]
fn consumer_cannot_use_more_than_its_share_of_slots() {
    let queue = FairQueue::new(FairQueueLimits { slots_per_consumer: 1, ..LIMITS });
    let _greedy = ask(&queue, 1).unwrap().expect("slot");
    let _waits = wait(&queue, 1);
    assert!(ask(&queue, 2).unwrap().is_some(), "the other slot is for others");
}

#[test]
fn queue_length_is_limited_per_consumer_and_in_total() {
    let queue = FairQueue::new(LIMITS);
    let _used = [ask(&queue, 1).unwrap(), ask(&queue, 1).unwrap()];
    let own: Vec<_> = (0..8).map(|_| wait(&queue, 1)).collect();
    assert_eq!(ask(&queue, 1).err(), Some(QueueFull));
    let others: Vec<_> = (2..6).map(|id| wait(&queue, id)).collect();
    assert_eq!(ask(&queue, 1).err(), Some(QueueFull), "no other consumer has more waiting");
    drop(others);
    let _other = wait(&queue, 9);
    drop(own);
    let _again = wait(&queue, 1);
    assert_eq!(queue.waiting(), 2, "cancelled requests make room");
}

#[test]
fn full_queue_rejects_the_newest_request_of_the_largest_consumer() {
    let queue = FairQueue::new(FairQueueLimits { waiting: 9, ..LIMITS });
    let _used = [ask(&queue, 1).unwrap(), ask(&queue, 1).unwrap()];
    let mut greedy: Vec<_> = (0..8).map(|_| wait(&queue, 1)).collect();
    let _second = wait(&queue, 2);
    let mut modest = wait(&queue, 3);
    let refused = greedy.pop().expect("newest request").now_or_never().expect("a result");
    assert_eq!(refused.err(), Some(QueueFull));
    assert!(greedy.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
    assert!(modest.as_mut().now_or_never().is_none());
    assert_eq!(queue.waiting(), 9);
}

#[test]
fn repeatedly_cancelled_requests_gain_no_extra_slots() {
    let limits =
        FairQueueLimits { slots: 4, slots_per_consumer: 2, waiting_per_consumer: 2, ..LIMITS };
    let queue = FairQueue::new(limits);
    let mut used: Vec<_> = [2, 2, 3, 3].map(|id| ask(&queue, id).unwrap()).into();
    for _ in 0..5 {
        drop([wait(&queue, 1), wait(&queue, 1)]);
    }
    let mut greedy = [wait(&queue, 1), wait(&queue, 1)];
    assert_eq!(queue.0.lock().ready, [user(1)], "the consumer is in line once");
    used.clear();
    let _slots = greedy.each_mut().map(slot);
    let _waits = wait(&queue, 1);
    assert_eq!(queue.used(), 2, "the consumer uses only its share");
}

#[tokio::test]
async fn waiting_requests_fail_after_max_wait() {
    let max_wait = Some(Duration::from_millis(1));
    let queue = FairQueue::new(FairQueueLimits { slots: 1, max_wait, ..LIMITS });
    let _used = ask(&queue, 1).unwrap();
    assert_eq!(queue.acquire(user(2)).await.err(), Some(QueueFull));
}

#[test]
fn cancelled_waiting_request_takes_no_slot() {
    let queue = FairQueue::new(FairQueueLimits { slots: 1, ..LIMITS });
    let used = ask(&queue, 1).unwrap();
    drop(wait(&queue, 2));
    let mut third = wait(&queue, 3);
    drop(used);
    let slot = slot(&mut third).expect("slot");
    assert_eq!((queue.used(), queue.waiting()), (1, 0));
    drop(slot);
    assert_eq!(queue.used(), 0);
    assert!(queue.0.lock().consumers.is_empty());
}

#[test]
fn assigned_slot_of_a_cancelled_request_goes_to_the_next_one() {
    let queue = FairQueue::new(FairQueueLimits { slots: 1, ..LIMITS });
    let used = ask(&queue, 1).unwrap();
    let (given, mut next) = (wait(&queue, 2), wait(&queue, 3));
    drop(used);
    drop(given);
    assert!(slot(&mut next).is_some());
}

#[test]
fn ipv6_network_is_one_consumer() {
    let consumer = |text: &str| Consumer::from_address(text.parse().expect("valid address"));
    assert_eq!(consumer("2001:db8::1"), consumer("2001:db8::ffff:2"));
    assert_ne!(consumer("2001:db8::1"), consumer("2001:db8:0:1::1"));
    assert_eq!(consumer("::ffff:10.0.0.1"), consumer("10.0.0.1"));
}
