use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::mpsc;
use std::thread::ThreadId;

use flate2::read::GzDecoder;
use uuid::Uuid;

use super::*;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const TENANT: Consumer = Consumer::Organization(Uuid::from_u128(1));
const MEMBER: Payer = Payer { client: CLIENT, tenant: Some(TENANT) };
const SIZE: usize = 20 * CHUNK_SIZE + 5;

fn delivery(total: usize) -> (ResponseDelivery, MemoryBudget) {
    let budget = MemoryBudget::new(total);
    (ResponseDelivery::new(budget.clone()), budget)
}

/// Returns bytes without repeated pieces.
fn bytes(size: usize) -> Vec<u8> {
    (0..size as u64).map(|at| (at.wrapping_mul(at) >> 8).to_le_bytes()[0]).collect()
}

fn response(body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.extensions_mut().insert(TENANT);
    response
}

async fn frame(body: &mut Body) -> Bytes {
    body.frame().await.expect("a frame").expect("no error").into_data().expect("data")
}

#[tokio::test]
async fn small_response_is_neither_charged_nor_copied() {
    let (delivery, budget) = delivery(1);
    let small = Bytes::from(bytes(CHUNK_SIZE));
    let mut body = delivery.deliver(response(small.clone()), CLIENT).into_body();
    assert_eq!(budget.used(), 0);
    assert_eq!(frame(&mut body).await.as_ptr(), small.as_ptr());
}

#[tokio::test]
async fn response_of_four_chunks_is_charged_until_sent_and_not_copied() {
    let (delivery, budget) = delivery(1 << 30);
    let sent = bytes(MAX_SINGLE_CHUNK);
    let buffer = sent.as_ptr();
    let mut body = delivery.deliver(response(sent), CLIENT).into_body();
    let piece = frame(&mut body).await;
    assert_eq!((piece.as_ptr(), piece.len()), (buffer, MAX_SINGLE_CHUNK));
    assert!(body.is_end_stream());
    assert_eq!(budget.used(), MAX_SINGLE_CHUNK);
    drop(piece);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn large_response_is_released_chunk_by_chunk_as_it_is_sent() {
    let (delivery, budget) = delivery(1 << 30);
    let sent = bytes(SIZE);
    let mut body = delivery.deliver(response(sent.clone()), CLIENT).into_body();
    assert_eq!((body.size_hint().exact(), budget.used()), (Some(SIZE as u64), SIZE));
    let mut received = Vec::new();
    while !body.is_end_stream() {
        let piece = frame(&mut body).await;
        assert!(piece.len() <= CHUNK_SIZE);
        assert_eq!(budget.used(), SIZE - received.len(), "a piece is counted until it has left");
        received.extend_from_slice(&piece);
        drop(piece);
        assert_eq!(budget.used(), SIZE - received.len());
        assert_eq!(body.size_hint().exact(), Some((SIZE - received.len()) as u64));
    }
    assert!(received == sent);
}

#[tokio::test]
async fn response_of_a_disconnected_client_is_released() {
    let (delivery, budget) = delivery(1 << 30);
    let mut body = delivery.deliver(response(bytes(SIZE)), CLIENT).into_body();
    let piece = frame(&mut body).await;
    drop(body);
    assert_eq!(budget.used(), CHUNK_SIZE);
    drop(piece);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn shared_response_is_not_copied_and_is_charged_once() {
    let (delivery, budget) = delivery(1 << 30);
    let page = Bytes::from(bytes(SIZE));
    let range = page.as_ptr_range();
    let bodies: Vec<_> =
        (0..3).map(|_| delivery.deliver(response(page.clone()), CLIENT).into_body()).collect();
    assert_eq!(budget.used(), SIZE);
    for mut body in bodies {
        while !body.is_end_stream() {
            assert!(range.contains(&frame(&mut body).await.as_ptr()));
        }
    }
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn client_is_charged_for_a_shared_response_until_it_drops_the_last_chunk() {
    // A client has room for one page.
    let (delivery, budget) = delivery(4 * SIZE);
    let page = |page: &Bytes| Response::new(Body::from(page.clone()));
    let (first, other) = (Bytes::from(bytes(SIZE)), Bytes::from(bytes(SIZE)));
    let mut body = delivery.deliver(page(&first), CLIENT).into_body();
    for _ in 0..SIZE / CHUNK_SIZE {
        frame(&mut body).await;
    }
    let last = frame(&mut body).await;
    drop(body);
    assert_eq!((last.len(), budget.used()), (SIZE % CHUNK_SIZE, SIZE));
    assert_eq!(delivery.deliver(page(&other), CLIENT).status(), 503);
    drop(last);
    assert_eq!(budget.used(), 0);
    assert_eq!(delivery.deliver(page(&other), CLIENT).status(), 200);
}

#[tokio::test]
async fn write_responses_may_exceed_the_share() {
    let (delivery, budget) = delivery(8 * SIZE);
    let changed = |memory: &RequestMemory| {
        let mut response = response(bytes(SIZE));
        response.extensions_mut().insert(memory.clone());
        delivery.deliver(response, CLIENT)
    };
    let request = || budget.for_request(MEMBER, SIZE);
    let (reserved, unreserved) = (request(), request());
    reserved.reserve(1).expect("room");
    let read: Vec<_> =
        (0..3).map(|_| delivery.deliver(response(bytes(SIZE / 2)), CLIENT)).collect();
    let rest = budget.charge(MEMBER, SIZE / 2 - 1).expect("room");
    assert_eq!(delivery.deliver(response(bytes(SIZE)), CLIENT).status(), 503);
    let kept = [changed(&unreserved), changed(&reserved)];
    assert!(kept.iter().all(|response| response.status() == 200), "an eighth more, and reserved");
    assert_eq!(changed(&unreserved).status(), 503, "an eighth is the most");
    drop((read, kept, rest));
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn large_response_is_not_split_on_the_request_thread() {
    let budget = MemoryBudget::new(1 << 30);
    let sent = bytes(3 * MAX_INLINE_SPLIT + 7);
    let charge = budget.charge(MEMBER, sent.len()).expect("room");
    let pieces =
        ChunkedBody::of(FullBody { bytes: sent.clone().into(), charge, shared_charge: None });
    assert!(pieces.chunks.is_empty() && pieces.splitting.is_some(), "another thread cuts it");
    let (mut body, mut received) = (Body::new(pieces), Vec::new());
    assert_eq!((body.size_hint().exact(), budget.used()), (Some(sent.len() as u64), sent.len()));
    while !body.is_end_stream() {
        received.extend_from_slice(&frame(&mut body).await);
        assert_eq!(budget.used(), sent.len() - received.len());
    }
    assert!(received == sent);
}

#[tokio::test]
async fn response_beyond_the_share_becomes_a_503_and_keeps_its_extensions() {
    #[derive(Clone)]
    struct Known;
    let (delivery, budget) = delivery(4 * SIZE);
    let first = delivery.deliver(response(bytes(SIZE)), CLIENT);
    let mut second = response(bytes(SIZE));
    second.extensions_mut().insert(Known);
    let second = delivery.deliver(second, CLIENT);
    assert_eq!((second.status().as_u16(), &second.headers()["retry-after"]), (503, &1.into()));
    assert!(second.extensions().get::<Error>().is_some_and(Error::is_overload));
    assert!(second.extensions().get::<Known>().is_some());
    assert_eq!(budget.used(), SIZE);
    drop(first);
    assert_eq!(delivery.deliver(response(bytes(SIZE)), CLIENT).status(), 200);
}

#[tokio::test]
async fn compressed_response_is_created_in_steps_and_charged_until_sent() {
    let (delivery, budget) = delivery(1 << 30);
    let text = "all kinds of text ".repeat(1 << 16).into_bytes();
    let mut plain = response(text.clone());
    plain.extensions_mut().insert(PendingGzip);
    let mut body = delivery.deliver(plain, CLIENT).into_body();
    assert_eq!(budget.used(), text.len() + COMPRESSOR_MEMORY);
    let (mut packed, mut frames, mut before) = (Vec::new(), 0, budget.used());
    while let Some(frame) = body.frame().await {
        frames += 1;
        packed.extend_from_slice(&frame.expect("no error").into_data().expect("data"));
        assert!(budget.used() < before, "compressed pieces are released");
        before = budget.used();
    }
    let steps = text.len().div_ceil(CHUNK_SIZE).div_ceil(CHUNKS_PER_STEP);
    assert_eq!(frames, steps, "each step on a blocking thread makes a frame");
    let mut unpacked = Vec::new();
    GzDecoder::new(packed.as_slice()).read_to_end(&mut unpacked).expect("gzip");
    assert!(unpacked == text && budget.used() == 0);
}

/// Text that reports the thread that drops it.
struct DropProbe(Vec<u8>, mpsc::Sender<ThreadId>);

impl AsRef<[u8]> for DropProbe {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for DropProbe {
    fn drop(&mut self) {
        let _nobody_asks = self.1.send(thread::current().id());
    }
}

#[tokio::test]
async fn compression_never_runs_on_the_request_thread() {
    // One step per size. The text is dropped in the last step, which shows the thread of the step.
    for steps in 1..4 {
        let (delivery, _) = delivery(1 << 30);
        let (drops, dropped) = mpsc::channel();
        let text = DropProbe(bytes(steps * CHUNKS_PER_STEP * CHUNK_SIZE), drops);
        let mut plain = response(Bytes::from_owner(text));
        plain.extensions_mut().insert(PendingGzip);
        let mut body = delivery.deliver(plain, CLIENT).into_body();
        while body.frame().await.is_some() {}
        assert_ne!(dropped.try_recv().expect("the text is dropped"), thread::current().id());
    }
}

#[tokio::test]
async fn cancelled_compression_releases_its_memory() {
    let (delivery, budget) = delivery(1 << 30);
    let mut plain = response(bytes(SIZE));
    plain.extensions_mut().insert(PendingGzip);
    let mut body = delivery.deliver(plain, CLIENT).into_body();
    frame(&mut body).await;
    drop(body);
    assert_eq!(budget.used(), 0);
}
