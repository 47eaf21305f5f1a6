//! What keeps ops in the order of the lines.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};

use crate::lines::Work;
use crate::Answer;

/// Tells when a future has been polled for the first time, or will not be any more.
pub(crate) struct Begin {
    pub(crate) work: Work,
    pub(crate) begun: Option<Sender<()>>,
}

impl Future for Begin {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let found = self.work.as_mut().poll(context);
        self.begun = None; // whoever waits for it sees the channel closed
        found
    }
}

/// Does the first step of what hands over to the library: what comes behind it in the line may begin then.
/// Gives the outcome, if it is there already; otherwise await `work` for it.
pub async fn first_step<F: Future + Unpin>(work: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| match Pin::new(&mut *work).poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
