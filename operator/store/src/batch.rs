//! Gathers hot writes into statements of many rows.
//!
//! One flusher per kind of write: while a flush runs, what comes in waits, and the next flush takes
//! all of it. So a lone write goes at once and a crowd shares a statement, without a timer. A key
//! (resource) is in a flush at most once, a later one of the same key waits for the next, in order.
//! Each caller gets its own answer; a failed flush answers each of its callers with the error.

use std::{collections::HashSet, collections::VecDeque, future::Future, hash::Hash, sync::Arc};

use tokio::sync::{mpsc, oneshot};

use crate::{
    error::StoreError,
    writes::{Writer, Writes},
};

/// Rows of one flush: beyond some 200 the cost of a row no longer falls, and locks are held longer.
pub const MAX_BATCH: usize = 256;

/// Writes that wait for a flush; beyond it callers wait to hand theirs in. Sixteen flushes: about
/// a tenth of a second of work.
const QUEUE: usize = 16 * MAX_BATCH;

/// What a flush takes and gives: for each item one answer, in the same order.
pub trait Flush: Send + 'static {
    type Item: Send + 'static;
    type Answer: Send + 'static;
    type Key: Eq + Hash + Send;

    /// As whom its results are observed.
    const WRITER: Writer;

    /// Two items of one key never meet in a flush.
    fn key(item: &Self::Item) -> Self::Key;

    fn flush(
        &self,
        items: &[Self::Item],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, StoreError>> + Send;
}

struct Waiting<F: Flush> {
    item: F::Item,
    caller: oneshot::Sender<Result<F::Answer, StoreError>>,
}

/// Handle to a flusher; the flusher ends with its last handle.
pub struct Batcher<F: Flush>(mpsc::Sender<Waiting<F>>);

impl<F: Flush> Batcher<F> {
    /// Starts the flusher on the current runtime.
    pub fn start(flush: F, writes: Arc<Writes>) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(run(flush, writes, receiver));
        Self(sender)
    }

    /// Hands in one item and waits for its answer.
    pub async fn submit(&self, item: F::Item) -> Result<F::Answer, StoreError> {
        let (caller, answer) = oneshot::channel();
        let stopped = || StoreError::Unavailable(Arc::new(sqlx::Error::WorkerCrashed));
        self.0
            .send(Waiting { item, caller })
            .await
            .map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

async fn run<F: Flush>(flush: F, writes: Arc<Writes>, mut receiver: mpsc::Receiver<Waiting<F>>) {
    let mut held = VecDeque::new();
    loop {
        if held.is_empty() {
            match receiver.recv().await {
                Some(first) => held.push_back(first),
                None => return,
            }
        }
        while held.len() < QUEUE
            && let Ok(next) = receiver.try_recv()
        {
            held.push_back(next);
        }
        let (items, callers) = take(&mut held);
        let flushed = flush.flush(&items).await;
        writes.observe(F::WRITER, &flushed);
        match flushed {
            Ok(answers) if answers.len() == callers.len() => {
                for (caller, answer) in callers.into_iter().zip(answers) {
                    // A caller that went away needs no answer.
                    let _ = caller.send(Ok(answer));
                }
            }
            Ok(answers) => {
                let error = StoreError::corrupt(format!(
                    "a flush of {} rows with {} answers",
                    callers.len(),
                    answers.len()
                ));
                refuse::<F>(callers, &error);
            }
            Err(error) => refuse::<F>(callers, &error),
        }
    }
}

type Callers<F> = Vec<oneshot::Sender<Result<<F as Flush>::Answer, StoreError>>>;

fn refuse<F: Flush>(callers: Callers<F>, error: &StoreError) {
    for caller in callers {
        let _ = caller.send(Err(error.clone()));
    }
}

/// Takes the next flush out of `held`; what its keys exclude stays, in order.
fn take<F: Flush>(held: &mut VecDeque<Waiting<F>>) -> (Vec<F::Item>, Callers<F>) {
    let mut keys = HashSet::new();
    let mut items = Vec::new();
    let mut callers = Vec::new();
    let mut left = VecDeque::new();
    for waiting in held.drain(..) {
        if items.len() < MAX_BATCH && keys.insert(F::key(&waiting.item)) {
            items.push(waiting.item);
            callers.push(waiting.caller);
        } else {
            left.push_back(waiting);
        }
    }
    *held = left;
    (items, callers)
}
