//! What the client of each cell is told. Every cell stands here: one that is left out does not compile.

use super::cell::{Cell, Era, Fault, Form, Phase};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// An error with this status in place of an answer.
    Refused(u16, &'static str),
    /// The worker's answer with its end.
    Whole,
    /// What the worker sent, without an end.
    Cut,
    /// What the worker sent, an error event with the code of this status, and the end.
    Told(u16, &'static str),
    /// As the chunks happen to lie: with an error event or without an end.
    ToldOrCut(u16, &'static str),
    /// Whichever of its bounds the worker meets first: told, cut or refused.
    Bounded,
    /// As far as the request got: it is not sent, or nobody knows.
    UnsentOrUnknown,
    /// Whatever the worker does, the session has ended.
    Ended,
    /// It goes on until the client leaves.
    Endless,
    /// There is no such cell.
    None(&'static str),
}

use Expected::{Bounded, Cut, Ended, Endless, None, Refused, Told, ToldOrCut, UnsentOrUnknown, Whole};

pub(super) fn of(cell: Cell) -> Expected {
    let Cell { fault, phase, form, era } = cell;
    // A client whose worker has the session may come back for the answer.
    let is_last_word = form == Form::CallEvents && era != Era::Native;
    let json = form.is_json();
    let expected = match phase {
        Phase::Connect => connect(fault),
        Phase::Head => head(fault),
        Phase::WithinHead => within_head(fault, json),
        Phase::WithinBody if !json => None("an event stream has no body beside its events"),
        Phase::WithinBody => within_body(fault),
        Phase::WithinEvent | Phase::BetweenEvents if json => None("a JSON text has no events"),
        Phase::WithinEvent => within_event(fault, is_last_word),
        Phase::BetweenEvents => between_events(fault, is_last_word),
        Phase::Behind if form == Form::Stream => None("a stream owes no answer"),
        Phase::Behind => behind(fault, json),
    };
    if matches!(expected, None(_)) {
        return expected;
    }
    match form {
        Form::CallJson | Form::CallEvents => expected,
        Form::End => Ended,
        Form::OpenJson | Form::OpenEvents => opening(cell, expected),
        Form::Stream => stream(cell, era, expected),
    }
}

/// An answer to `initialize` is read before any of it is passed on, as far as to the response.
fn opening(cell: Cell, expected: Expected) -> Expected {
    if cell.phase == Phase::Behind && cell.form == Form::OpenEvents {
        return expected;
    }
    match (cell.fault, expected) {
        (Fault::SaysLess | Fault::Nul, Whole) if cell.phase != Phase::Behind => Refused(502, UNUSABLE),
        (Fault::Floods, Cut) if cell.form == Form::OpenJson => Refused(502, "larger than"),
        (Fault::Floods, Cut | ToldOrCut(..)) => Bounded,
        (Fault::Stalls | Fault::Dribbles, Cut) => Refused(504, UNKNOWN),
        (_, Cut) => Refused(502, UNKNOWN),
        (_, expected) => expected,
    }
}

/// A stream has no end of its own, and only the one of the newer era can carry an error of a request.
fn stream(cell: Cell, era: Era, expected: Expected) -> Expected {
    match (cell.fault, expected) {
        (Fault::Floods | Fault::Dribbles, Cut | Told(..) | ToldOrCut(..)) => Endless,
        // It has ended as it said it would.
        (Fault::SaysLess, Told(..)) => Whole,
        (_, Told(..)) if era == Era::Native => Cut,
        (_, expected) => expected,
    }
}

fn connect(fault: Fault) -> Expected {
    match fault {
        Fault::Refuses | Fault::Stalls => Refused(503, UNSENT),
        Fault::Closes | Fault::Resets => UnsentOrUnknown,
        Fault::Dies => None("a worker that is gone refuses"),
        Fault::SaysMore
        | Fault::SaysLess
        | Fault::TwoLengths
        | Fault::BadLength
        | Fault::LengthAndChunks
        | Fault::SaysHuge
        | Fault::NoHttp
        | Fault::BadHeader
        | Fault::NulInHeader
        | Fault::HugeHeader
        | Fault::EndlessHeaders
        | Fault::EndlessInterim
        | Fault::SwitchesProtocols
        | Fault::Redirects(_)
        | Fault::RefusesUs(_)
        | Fault::BadChunk
        | Fault::Nul
        | Fault::AnswersTwice
        | Fault::AnswersAgain
        | Fault::Floods
        | Fault::Dribbles => None("nothing is said before a request"),
    }
}

fn head(fault: Fault) -> Expected {
    match fault {
        Fault::Closes | Fault::Resets | Fault::Dies | Fault::NoHttp => Refused(502, BROKEN),
        Fault::Stalls | Fault::EndlessInterim => Refused(504, UNKNOWN),
        Fault::SwitchesProtocols => Refused(502, UNKNOWN),
        Fault::Redirects(_) | Fault::RefusesUs(_) => Refused(502, "By that it has not carried"),
        Fault::Refuses => None("the connection stands"),
        Fault::SaysMore
        | Fault::SaysLess
        | Fault::TwoLengths
        | Fault::BadLength
        | Fault::LengthAndChunks
        | Fault::SaysHuge
        | Fault::BadHeader
        | Fault::NulInHeader
        | Fault::HugeHeader
        | Fault::EndlessHeaders
        | Fault::Dribbles => None("it takes a part of a head"),
        Fault::BadChunk | Fault::Nul | Fault::AnswersTwice | Fault::AnswersAgain | Fault::Floods => {
            None("it takes a whole head")
        }
    }
}

fn within_head(fault: Fault, json: bool) -> Expected {
    match fault {
        Fault::Closes
        | Fault::Resets
        | Fault::Dies
        | Fault::TwoLengths
        | Fault::BadLength
        | Fault::BadHeader
        | Fault::NulInHeader
        | Fault::HugeHeader
        | Fault::EndlessHeaders => Refused(502, BROKEN),
        Fault::LengthAndChunks => Refused(502, UNUSABLE),
        Fault::Stalls | Fault::Dribbles => Refused(504, UNKNOWN),
        Fault::SaysHuge if json => Refused(502, "larger than"),
        Fault::SaysHuge => None("an event stream may be of any length"),
        Fault::Refuses => None("the connection stands"),
        Fault::NoHttp
        | Fault::EndlessInterim
        | Fault::SwitchesProtocols
        | Fault::Redirects(_)
        | Fault::RefusesUs(_) => None("a head has begun"),
        Fault::SaysMore
        | Fault::SaysLess
        | Fault::BadChunk
        | Fault::Nul
        | Fault::AnswersTwice
        | Fault::AnswersAgain
        | Fault::Floods => None("it takes a whole head"),
    }
}

fn within_body(fault: Fault) -> Expected {
    match fault {
        Fault::Stalls
        | Fault::Closes
        | Fault::Resets
        | Fault::Dies
        | Fault::SaysMore
        | Fault::BadChunk
        | Fault::Floods
        | Fault::Dribbles => Cut,
        // What was promised has come; that it is half a text is for its reader to see.
        Fault::SaysLess | Fault::Nul => Whole,
        Fault::AnswersTwice | Fault::AnswersAgain => None("it takes a whole answer"),
        Fault::Refuses
        | Fault::TwoLengths
        | Fault::BadLength
        | Fault::LengthAndChunks
        | Fault::SaysHuge
        | Fault::NoHttp
        | Fault::BadHeader
        | Fault::NulInHeader
        | Fault::HugeHeader
        | Fault::EndlessHeaders
        | Fault::EndlessInterim
        | Fault::SwitchesProtocols
        | Fault::Redirects(_)
        | Fault::RefusesUs(_) => None(AFTER_HEAD),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are as in any body")]
fn within_event(fault: Fault, is_last_word: bool) -> Expected {
    // Within an event nothing can be said that would not become a part of it.
    match fault {
        Fault::SaysLess | Fault::Nul if is_last_word => Cut,
        _ => within_body(fault),
    }
}

fn between_events(fault: Fault, is_last_word: bool) -> Expected {
    match fault {
        Fault::Stalls | Fault::Dribbles => Told(504, UNKNOWN),
        Fault::Closes | Fault::Resets | Fault::Dies | Fault::SaysMore | Fault::BadChunk => Told(502, BROKEN),
        Fault::Floods => ToldOrCut(504, UNKNOWN),
        // The stream has ended as it said it would.
        Fault::SaysLess if is_last_word => Told(502, BROKEN),
        // They begin an event.
        Fault::Nul if is_last_word => Cut,
        Fault::SaysLess | Fault::Nul => Whole,
        Fault::AnswersTwice | Fault::AnswersAgain => None("it takes a whole answer"),
        Fault::Refuses
        | Fault::TwoLengths
        | Fault::BadLength
        | Fault::LengthAndChunks
        | Fault::SaysHuge
        | Fault::NoHttp
        | Fault::BadHeader
        | Fault::NulInHeader
        | Fault::HugeHeader
        | Fault::EndlessHeaders
        | Fault::EndlessInterim
        | Fault::SwitchesProtocols
        | Fault::Redirects(_)
        | Fault::RefusesUs(_) => None(AFTER_HEAD),
    }
}

fn behind(fault: Fault, json: bool) -> Expected {
    match fault {
        Fault::Stalls | Fault::Closes | Fault::Resets | Fault::Dies if json => Whole,
        Fault::SaysMore | Fault::BadChunk | Fault::Floods | Fault::Dribbles if json => Cut,
        // The client has all that it is owed.
        Fault::Stalls
        | Fault::Closes
        | Fault::Resets
        | Fault::Dies
        | Fault::SaysMore
        | Fault::BadChunk
        | Fault::Floods
        | Fault::Dribbles
        | Fault::SaysLess
        | Fault::AnswersTwice
        | Fault::AnswersAgain => Whole,
        Fault::Nul => None("all text has been sent"),
        Fault::Refuses
        | Fault::TwoLengths
        | Fault::BadLength
        | Fault::LengthAndChunks
        | Fault::SaysHuge
        | Fault::NoHttp
        | Fault::BadHeader
        | Fault::NulInHeader
        | Fault::HugeHeader
        | Fault::EndlessHeaders
        | Fault::EndlessInterim
        | Fault::SwitchesProtocols
        | Fault::Redirects(_)
        | Fault::RefusesUs(_) => None(AFTER_HEAD),
    }
}

pub(super) const UNSENT: &str = "The request was not sent";
pub(super) const UNKNOWN: &str = "Outcome unknown";
const BROKEN: &str = "The worker broke off without an answer. Outcome unknown";
const UNUSABLE: &str = "The worker's answer is not usable";
const AFTER_HEAD: &str = "the head has passed";
