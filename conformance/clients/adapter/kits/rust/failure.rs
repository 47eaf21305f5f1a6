//! How ops do not work out.

use std::fmt::Display;
use std::io;

use serde_json::{json, Value};

/// How an op did not work out; `kind` is one of the error kinds of ADAPTER.md.
#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: &'static str,
    /// The op surely had no effect and will have none; false in doubt.
    pub definite: bool,
    /// The number on the wire, where there is one.
    pub code: Option<i64>,
    pub text: String,
    /// Name of a remote error, where the protocol has such names.
    pub name: Option<String>,
}

impl Failure {
    /// As definite as its kind implies.
    pub fn new(kind: &'static str, text: impl Display) -> Self {
        let definite = matches!(kind, "auth" | "invalid" | "refused" | "unsupported");
        Failure { kind, definite, code: None, text: text.to_string(), name: None }
    }

    /// The peer refused, with a code.
    pub fn refused(code: i64, text: impl Display) -> Self {
        Failure { code: Some(code), ..Failure::new("refused", text) }
    }

    /// The op had no effect, where its kind does not imply it.
    pub fn surely(self) -> Self {
        Failure { definite: true, ..self }
    }

    /// What a remote error is called, where the protocol has such names.
    pub fn named(self, name: impl Display) -> Self {
        Failure { name: Some(name.to_string()), ..self }
    }

    /// The `error` object of a line.
    pub fn report(&self) -> Value {
        let mut line = json!({"kind": self.kind, "definite": self.definite, "code": self.code, "text": self.text});
        if let Some(name) = &self.name {
            line["type"] = json!(name);
        }
        line
    }
}

/// What an error of the network means, whatever the library.
impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Failure::new("connection", error).surely(),
            io::ErrorKind::TimedOut => Failure::new("timeout", error),
            _ => Failure::new("connection", error),
        }
    }
}
