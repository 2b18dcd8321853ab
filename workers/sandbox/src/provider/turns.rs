//! What changes one tenant's sandbox happens one after the other, and to its end.
//!
//! A tenant with work has one task, which takes its work from a bounded queue; the task goes when the queue is empty. A
//! caller that goes away does not interrupt what it has asked for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kit::Tenant;
use kit::tasks::Tasks;
use tokio::sync::{mpsc, oneshot};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;
type Queues = Arc<Mutex<HashMap<Tenant, mpsc::Sender<Work>>>>;

#[derive(Default)]
pub(super) struct Turns {
    queues: Queues,
    tasks: Tasks,
}

impl Turns {
    /// Does `work` after everything else that was asked for the tenant; `None` when too much waits already.
    pub(super) async fn take<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (work, done) = reporting(work);
        self.enqueue(tenant, work)?;
        done.await.ok()
    }

    /// Does `work` to its end, beside everything else.
    pub(super) async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (work, done) = reporting(work);
        self.tasks.start(work);
        done.await.ok()
    }

    /// Waits for what was begun.
    pub(super) async fn drained(&self) {
        if tokio::time::timeout(LONGEST_DRAIN, self.tasks.drained()).await.is_err() {
            tracing::warn!("a change of a sandbox did not end");
        }
    }

    fn enqueue(&self, tenant: &Tenant, work: Work) -> Option<()> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        match queues.entry(tenant.clone()) {
            Entry::Occupied(queue) => queue.get().try_send(work).ok(),
            Entry::Vacant(vacant) => {
                let (sender, receiver) = mpsc::channel(LONGEST_QUEUE);
                sender.try_send(work).ok()?;
                vacant.insert(sender);
                self.tasks.start(serve(Arc::clone(&self.queues), tenant.clone(), receiver));
                Some(())
            }
        }
    }
}

async fn serve(queues: Queues, tenant: Tenant, mut queue: mpsc::Receiver<Work>) {
    while let Some(work) = queue.recv().await {
        work.await;
        // Work is queued under this lock alone, so nothing comes between the look and the removal.
        let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.is_empty() {
            queues.remove(&tenant);
            return;
        }
    }
}

fn reporting<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> (Work, oneshot::Receiver<T>) {
    let (report, done) = oneshot::channel();
    let work = async move {
        // Whoever asked may be gone.
        let _ = report.send(work.await);
    };
    (Box::pin(work), done)
}

const LONGEST_QUEUE: usize = 16;
const LONGEST_DRAIN: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kit::Tenant;
    use tokio::sync::{Notify, watch};

    use super::{LONGEST_QUEUE, Turns};

    #[tokio::test]
    async fn work_for_one_tenant_waits_and_for_another_does_not() {
        let (turns, a, b) = (Arc::new(Turns::default()), Tenant::parse("a").unwrap(), Tenant::parse("b").unwrap());
        let (begun, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (order, seen) = watch::channel(Vec::new());
        let order = Arc::new(order);
        let (first, second) = (Arc::clone(&order), Arc::clone(&order));
        let (begin, open) = (Arc::clone(&begun), Arc::clone(&gate));
        let slow = turns.take(&a, async move {
            begin.notify_one();
            open.notified().await;
            first.send_modify(|order| order.push(1));
        });
        let rest = async {
            begun.notified().await;
            let next = turns.take(&a, async move { second.send_modify(|order| order.push(2)) });
            assert_eq!(turns.take(&b, async { 7 }).await, Some(7));
            gate.notify_one();
            next.await
        };
        tokio::join!(slow, rest);
        assert_eq!(*seen.borrow(), [1, 2]);
        assert!(turns.queues.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_caller_that_leaves_does_not_interrupt_and_a_crowd_is_refused() {
        let (turns, a) = (Turns::default(), Tenant::parse("a").unwrap());
        let gate = Arc::new(Notify::new());
        let (done, mut ended) = watch::channel(0);
        let done = Arc::new(done);
        for _ in 0..LONGEST_QUEUE {
            let (open, done) = (Arc::clone(&gate), Arc::clone(&done));
            let work = async move {
                open.notified().await;
                open.notify_one();
                done.send_modify(|count| *count += 1);
            };
            // Polled once, then dropped.
            let mut call = Box::pin(turns.take(&a, work));
            assert!(
                std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context))).await.is_pending()
            );
        }
        assert_eq!(turns.take(&a, async {}).await, None);
        gate.notify_one();
        ended.wait_for(|count| *count == LONGEST_QUEUE).await.unwrap();
    }
}
