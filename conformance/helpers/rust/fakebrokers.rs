//! Fake brokers for programs in Rust: starts `fakebrokers serve` and speaks its control API.
//!
//!     let broker = fakebrokers::serve("rabbitmq-stream", &[]);
//!     broker.call("create_stream", json!({"name": "orders"}));
//!
//! What a broker can be told is listed in its /openapi.json. Whatever is refused is a panic that says why. The
//! broker ends with the program. Runs where there is a `sh`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A fake broker that runs; `url`, `host` and `port` are where clients connect.
#[allow(dead_code)] // each program reads what it needs
pub struct Broker {
    pub url: String,
    pub host: String,
    pub port: u16,
    child: Child,
    control: String,
    name: String,
}

/// Starts one, with further flags of `fakebrokers serve`; the program is the words of $FAKEBROKERS, or "fakebrokers".
pub fn serve(protocol: &str, flags: &[&str]) -> Broker {
    let words = std::env::var("FAKEBROKERS").unwrap_or("fakebrokers".to_owned());
    // it ends with its standard input, so that it outlives no program, however that ends
    let mut child = Command::new("sh")
        .args(["-c", "exec 3<&0; \"$@\" <&- & cat <&3 >/dev/null; kill $!; wait", "sh"])
        .args(words.split(' '))
        .args(["serve", protocol, "--control", "0"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("fakebrokers cannot be run");
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Vec<&str> = line.split_whitespace().collect();
    let control = ready.iter().find_map(|word| word.strip_prefix("control=http://")).expect("it did not start");
    let url = ready[2].to_owned();
    let address = url.split("//").last().unwrap().trim_end_matches('/');
    let (host, port) = address.rsplit_once(':').unwrap();
    Broker {
        host: host.to_owned(),
        port: port.parse().unwrap(),
        control: control.to_owned(),
        name: protocol.to_owned(),
        url,
        child,
    }
}

#[allow(dead_code)] // each program calls what it needs
impl Broker {
    /// Tells the broker something: an operation with its arguments by name.
    pub fn call(&self, operation: &str, given: Value) -> Value {
        self.request("POST", operation, &given.to_string())
    }

    /// Asks for what an operation only reads; `given` is a query such as "name=orders".
    pub fn ask(&self, operation: &str, given: &str) -> Value {
        self.request("GET", &format!("{operation}?{given}"), "")
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Value {
        let mut line = TcpStream::connect(&self.control).unwrap();
        write!(
            line,
            "{method} /brokers/{}/{path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.name, self.control, body.len()
        )
        .unwrap();
        let mut answer = String::new();
        line.read_to_string(&mut answer).unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.split(' ').nth(1).unwrap().starts_with('2'), "{method} {path}: {text}");
        serde_json::from_str(text).unwrap_or(Value::Null)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
