//! What can go wrong, when, and for whom: the axes of the table.

/// What a worker does instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nobody listens.
    Refuses,
    Stalls,
    Closes,
    /// Closes with a reset.
    Resets,
    /// The whole process goes, its listener and all its connections.
    Dies,
    /// Promises more bytes than it sends, and closes.
    SaysMore,
    /// Sends more bytes than it promised.
    SaysLess,
    TwoLengths,
    BadLength,
    LengthAndChunks,
    /// Promises more than any answer may have.
    SaysHuge,
    NoHttp,
    BadHeader,
    NulInHeader,
    HugeHeader,
    EndlessHeaders,
    EndlessInterim,
    SwitchesProtocols,
    Redirects(u16),
    /// Complains about the edge's own credential or address.
    RefusesUs(u16),
    BadChunk,
    /// NUL bytes in place of text.
    Nul,
    /// Two whole answers at once.
    AnswersTwice,
    /// A second answer while the connection rests.
    AnswersAgain,
    Floods,
    /// A byte at a time, each within the time that a worker may be silent.
    Dribbles,
}

/// How far the exchange had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Connect,
    /// The worker has the request and has sent nothing.
    Head,
    WithinHead,
    /// Within a JSON text.
    WithinBody,
    WithinEvent,
    BetweenEvents,
    /// All that was owed has been sent, and the answer has not ended.
    Behind,
}

/// What is asked for, and how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    CallJson,
    CallEvents,
    OpenJson,
    OpenEvents,
    /// GET, or `subscriptions/listen`.
    Stream,
    /// DELETE.
    End,
}

/// Who keeps the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// The edge alone.
    Kept,
    /// The worker has one of its own.
    Native,
    Stateless,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) fault: Fault,
    pub(super) phase: Phase,
    pub(super) form: Form,
    pub(super) era: Era,
}

impl Form {
    pub(super) fn is_json(self) -> bool {
        matches!(self, Self::CallJson | Self::OpenJson | Self::End)
    }

    pub(super) fn opens(self) -> bool {
        matches!(self, Self::OpenJson | Self::OpenEvents)
    }
}

impl Cell {
    /// The cells of one row.
    pub(super) fn all(form: Form, era: Era) -> impl Iterator<Item = Self> {
        let cells = FAULTS.into_iter().flat_map(|fault| PHASES.into_iter().map(move |phase| (fault, phase)));
        cells.map(move |(fault, phase)| Self { fault, phase, form, era })
    }
}

const PHASES: [Phase; 7] = [
    Phase::Connect,
    Phase::Head,
    Phase::WithinHead,
    Phase::WithinBody,
    Phase::WithinEvent,
    Phase::BetweenEvents,
    Phase::Behind,
];

const FAULTS: [Fault; 37] = [
    Fault::Refuses,
    Fault::Stalls,
    Fault::Closes,
    Fault::Resets,
    Fault::Dies,
    Fault::SaysMore,
    Fault::SaysLess,
    Fault::TwoLengths,
    Fault::BadLength,
    Fault::LengthAndChunks,
    Fault::SaysHuge,
    Fault::NoHttp,
    Fault::BadHeader,
    Fault::NulInHeader,
    Fault::HugeHeader,
    Fault::EndlessHeaders,
    Fault::EndlessInterim,
    Fault::SwitchesProtocols,
    Fault::Redirects(300),
    Fault::Redirects(301),
    Fault::Redirects(302),
    Fault::Redirects(303),
    Fault::Redirects(304),
    Fault::Redirects(305),
    Fault::Redirects(306),
    Fault::Redirects(307),
    Fault::Redirects(308),
    Fault::RefusesUs(401),
    Fault::RefusesUs(403),
    Fault::RefusesUs(407),
    Fault::RefusesUs(421),
    Fault::BadChunk,
    Fault::Nul,
    Fault::AnswersTwice,
    Fault::AnswersAgain,
    Fault::Floods,
    Fault::Dribbles,
];
