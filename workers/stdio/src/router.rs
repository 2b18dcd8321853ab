//! Where a child's words go: to the call that they answer or belong to, else to the session's stream, never to two.

use tokio::sync::mpsc::Sender;

use crate::frame::{Frame, Kind};

/// What reaches the one who waits for an answer.
#[derive(Debug)]
pub(crate) enum Said {
    /// A notification or a request that comes before the answer.
    Before(Vec<u8>),
    /// The answer; nothing follows.
    Answer(Vec<u8>),
}

/// Why a call cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// A call with this id is running.
    SameId,
    /// As many calls run as may.
    Full,
    /// The child has ended.
    Ended,
}

/// The calls of one child.
#[derive(Debug)]
pub(crate) struct Router {
    most: usize,
    /// In the order in which they began.
    calls: Vec<Call>,
    stream: Option<Sender<Said>>,
    is_ended: bool,
}

#[derive(Debug)]
struct Call {
    id: String,
    token: Option<String>,
    mouth: Sender<Said>,
}

impl Router {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, calls: Vec::new(), stream: None, is_ended: false }
    }

    pub(crate) fn begin(&mut self, id: &str, token: Option<&str>, mouth: Sender<Said>) -> Result<(), Busy> {
        if self.is_ended {
            return Err(Busy::Ended);
        }
        if self.calls.iter().any(|call| call.id == id) {
            return Err(Busy::SameId);
        }
        if self.calls.len() >= self.most {
            return Err(Busy::Full);
        }
        self.calls.push(Call { id: id.to_owned(), token: token.map(str::to_owned), mouth });
        Ok(())
    }

    /// Takes a call out; its answer, if it still comes, is dropped.
    pub(crate) fn forget(&mut self, id: &str) -> Option<Sender<Said>> {
        let index = self.calls.iter().position(|call| call.id == id)?;
        Some(self.calls.remove(index).mouth)
    }

    /// Takes the session's stream unless somebody holds it.
    pub(crate) fn open_stream(&mut self, mouth: Sender<Said>) -> bool {
        let is_free = !self.is_ended && self.stream.as_ref().is_none_or(Sender::is_closed);
        if is_free {
            self.stream = Some(mouth);
        }
        is_free
    }

    pub(crate) fn close_stream(&mut self) {
        self.stream = None;
    }

    /// Whom one line of the child is for; `None` when nobody waits for it.
    pub(crate) fn route(&mut self, frame: &Frame<'_>, kind: Kind) -> Option<Sender<Said>> {
        if kind == Kind::Response {
            return self.forget(frame.id()?);
        }
        if frame.method() == "notifications/progress" {
            let token = frame.param("progressToken")?;
            return self.calls.iter().find(|call| call.token.as_deref() == Some(token)).map(|call| call.mouth.clone());
        }
        let newest = self.calls.iter().rev().map(|call| &call.mouth).find(|mouth| !mouth.is_closed());
        let stream = self.stream.as_ref().filter(|stream| !stream.is_closed());
        let is_of_no_call = frame.method().ends_with("/list_changed") || frame.method().ends_with("/updated");
        if is_of_no_call { stream.or(newest).cloned() } else { newest.or(stream).cloned() }
    }

    /// Whether somebody waits for this child's words.
    pub(crate) fn is_in_use(&self) -> bool {
        // A call that its client has left keeps no session.
        self.calls.iter().any(|call| !call.mouth.is_closed())
            || self.stream.as_ref().is_some_and(|stream| !stream.is_closed())
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// The child is gone: whoever waits learns it at once by the end of what they wait on.
    pub(crate) fn end(&mut self) {
        self.is_ended = true;
        self.calls.clear();
        self.stream = None;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{Receiver, channel};

    use super::{Busy, Router, Said};
    use crate::frame::Frame;

    fn call(router: &mut Router, id: &str, token: Option<&str>) -> Receiver<Said> {
        let (mouth, ear) = channel(4);
        router.begin(id, token, mouth).unwrap();
        ear
    }

    fn say(router: &mut Router, line: &str) -> bool {
        let (frame, kind) = Frame::read(line.as_bytes()).unwrap();
        router.route(&frame, kind).is_some_and(|mouth| mouth.try_send(Said::Before(line.into())).is_ok())
    }

    #[test]
    fn an_answer_reaches_its_call_alone_and_once() {
        let mut router = Router::new(4);
        let (mut one, mut text) = (call(&mut router, "1", None), call(&mut router, "\"1\"", None));
        assert!(say(&mut router, r#"{"id":"1","result":{}}"#));
        assert!(text.try_recv().is_ok() && one.try_recv().is_err());
        assert!(!say(&mut router, r#"{"id":"1","result":{}}"#));
    }

    #[test]
    fn progress_follows_its_token_and_nothing_else() {
        let mut router = Router::new(4);
        let (mut old, mut new) = (call(&mut router, "1", Some("7")), call(&mut router, "2", None));
        assert!(say(&mut router, r#"{"method":"notifications/progress","params":{"progressToken":7}}"#));
        assert!(old.try_recv().is_ok() && new.try_recv().is_err());
        assert!(!say(&mut router, r#"{"method":"notifications/progress","params":{"progressToken":"7"}}"#));
    }

    #[test]
    fn other_words_go_to_the_newest_call_or_the_stream() {
        let mut router = Router::new(4);
        let line = r#"{"id":9,"method":"sampling/createMessage"}"#;
        assert!(!say(&mut router, line));
        let (mouth, mut stream) = channel(4);
        assert!(router.open_stream(mouth.clone()) && !router.open_stream(mouth));
        assert!(say(&mut router, line) && stream.try_recv().is_ok());
        let (_old, mut new) = (call(&mut router, "1", None), call(&mut router, "2", None));
        assert!(say(&mut router, line) && new.try_recv().is_ok() && stream.try_recv().is_err());
        assert!(say(&mut router, r#"{"method":"notifications/tools/list_changed"}"#) && stream.try_recv().is_ok());
    }

    #[test]
    fn an_id_is_taken_while_its_call_runs_and_calls_have_a_bound() {
        let mut router = Router::new(2);
        let _one = call(&mut router, "1", None);
        let (mouth, _ear) = channel(1);
        assert_eq!(router.begin("1", None, mouth.clone()), Err(Busy::SameId));
        let _two = call(&mut router, "2", None);
        assert_eq!(router.begin("3", None, mouth.clone()), Err(Busy::Full));
        assert!(router.forget("1").is_some());
        assert_eq!(router.begin("1", None, mouth.clone()), Ok(()));
        router.end();
        assert_eq!(router.begin("4", None, mouth), Err(Busy::Ended));
    }
}
