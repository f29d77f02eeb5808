//! Futures that are polled only where something has woken them.
//!
//! Whoever serves a connection asks all that it waits for several times for each token, and most of that has nothing new to say. To ask it
//! takes its locks, some of which all connections share.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use parking_lot::Mutex;

/// A future that is polled only where something has woken it since it was last polled.
pub(crate) struct WhenWoken<F> {
    future: F,
    signal: Arc<Signal>,
    /// The signal, as the future knows it.
    waker: Waker,
    /// Who waits for the future, as the signal knows it.
    waiting: Waker,
}

/// Notes that the future was woken, and wakes whoever waits for it.
struct Signal {
    is_woken: AtomicBool,
    waiting: Mutex<Waker>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        let waiting = self.waiting.lock().clone();
        waiting.wake();
    }
}

/// The same future, polled only where something has woken it.
pub(crate) fn when_woken<F: Future + Unpin>(future: F) -> WhenWoken<F> {
    // Nothing wakes what was never polled.
    let is_woken = AtomicBool::new(true);
    let signal = Arc::new(Signal { is_woken, waiting: Mutex::new(Waker::noop().clone()) });
    let waker = Waker::from(Arc::clone(&signal));
    WhenWoken { future, signal, waker, waiting: Waker::noop().clone() }
}

impl<F> WhenWoken<F> {
    /// Whether it would be polled now.
    pub(crate) fn is_woken(&self) -> bool {
        self.signal.is_woken.load(Ordering::Relaxed)
    }
}

impl<F: Future + Unpin> Future for WhenWoken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, signal, waker, waiting } = &mut *self;
        if !waiting.will_wake(context.waker()) {
            waiting.clone_from(context.waker());
            let _before = std::mem::replace(&mut *signal.waiting.lock(), context.waker().clone());
        }
        // Read first: to write it would take it from the processor that wakes next.
        if !signal.is_woken.load(Ordering::Acquire) || !signal.is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        Pin::new(future).poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, sync::atomic::AtomicUsize};

    use tokio::sync::Notify;

    use super::*;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn g13_what_nothing_has_woken_is_not_polled() {
        let (notify, polls) = (Notify::new(), AtomicUsize::new(0));
        let mut notified = std::pin::pin!(notify.notified());
        let mut future = when_woken(poll_fn(|context| {
            polls.fetch_add(1, Ordering::Relaxed);
            notified.as_mut().poll(context)
        }));
        let [first, second] = [(); 2].map(|()| Arc::<Woken>::default());
        let mut poll = |woken: &Arc<Woken>| {
            Pin::new(&mut future).poll(&mut Context::from_waker(&Arc::clone(woken).into()))
        };
        for by in [&first, &first, &second] {
            assert!(poll(by).is_pending());
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        notify.notify_waiters();
        // Only the last one who waited is woken.
        assert_eq!([&first, &second].map(|woken| woken.0.load(Ordering::Relaxed)), [0, 1]);
        assert!(poll(&second).is_ready());
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn g13_no_wake_is_lost_whoever_waits() {
        let (send, mut receive) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            for number in 0..20_000 {
                send.send(number).await.unwrap();
            }
        });
        let mut sum = when_woken(Box::pin(async move {
            let mut sum = 0_u64;
            while let Some(number) = receive.recv().await {
                sum += number;
            }
            sum
        }));
        let sum = loop {
            // Another task waits from time to time.
            let mut turns = 0;
            let waiting = tokio::spawn(async move {
                let done = poll_fn(|context| match Pin::new(&mut sum).poll(context) {
                    Poll::Ready(sum) => Poll::Ready(Some(sum)),
                    Poll::Pending if turns == 100 => Poll::Ready(None),
                    Poll::Pending => {
                        turns += 1;
                        Poll::Pending
                    }
                });
                (done.await, sum)
            });
            match waiting.await.unwrap() {
                (Some(done), _) => break done,
                (None, rest) => sum = rest,
            }
        };
        assert_eq!(sum, 19_999 * 20_000 / 2);
    }
}
