use crate::base::erased::erase;

use super::*;

const GREEDY: Consumer = Consumer::User(1);
const OTHER: Consumer = Consumer::User(2);

fn send(sender: &Sender, consumer: Consumer) {
    let (write, _answer) = QueuedWrite::new(Box::new(|_| Ok(erase(()))));
    sender.send_write(Some(consumer), write).expect("queued");
}

/// Takes the next write, which keeps its slot as if it had changed 500 records.
fn take_large(receiver: &Receiver) -> Cooldown {
    assert!(matches!(receiver.try_recv(), Some(Task::Write(_))));
    receiver.begin_cooldown(500).expect("a write of a consumer")
}

#[test]
fn cooldown_lasts_while_another_consumer_writes() {
    let (sender, receiver) = queue();
    send(&sender, GREEDY);
    let cooldown = take_large(&receiver);
    let begun = cooldown.until.checked_sub(Duration::from_secs(5)).expect("a time");
    assert_eq!(cooldown.remaining(begun), None, "no other consumer writes");
    let later = begun + Duration::from_secs(2);
    sender.note_writer(OTHER, later);
    // The cooldown ends when the other consumer is no longer active.
    assert_eq!(cooldown.remaining(later), Some(Duration::from_secs(1)));
    let last = begun + Duration::from_millis(4_900);
    sender.note_writer(OTHER, last);
    assert_eq!(cooldown.remaining(last), Some(Duration::from_millis(100)));
    assert_eq!(cooldown.remaining(cooldown.until), None, "it is over");
}

#[test]
fn write_that_displaces_another_wakes_the_writer() {
    let (sender, receiver) = queue();
    let mut cooldowns = Vec::new();
    for user in (10..).take(LIMITS.waiting / LIMITS.waiting_per_consumer) {
        for _ in 0..LIMITS.slots_per_consumer {
            send(&sender, Consumer::User(user));
            cooldowns.push(take_large(&receiver));
        }
        for _ in 0..LIMITS.waiting_per_consumer {
            send(&sender, Consumer::User(user));
        }
    }
    assert_eq!((sender.len(), receiver.due()), (LIMITS.waiting, 0), "no slot is free");
    sender.0.lock().wakes_at = Some(LIMITS.waiting + 1);
    send(&sender, OTHER);
    assert_eq!(sender.0.lock().wakes_at, None);
    assert!(matches!(receiver.try_recv(), Some(Task::Write(_))));
}

#[test]
fn task_waits_for_writes_without_a_slot_only_if_it_uses_the_whole_file() {
    let slots = LIMITS.slots_per_consumer;
    let quiesce = Task::Quiesce(Box::new(|| ()));
    for (task, before) in [(Task::Sync, slots), (quiesce, slots + 2), (Task::Close, slots + 2)] {
        let (sender, receiver) = queue();
        for _ in 0..slots + 2 {
            send(&sender, GREEDY);
        }
        sender.send(task).expect("queued");
        let tasks = std::iter::from_fn(|| receiver.try_recv());
        let writes = tasks.take_while(|task| matches!(task, Task::Write(_))).count();
        assert_eq!(writes, before);
    }
}
