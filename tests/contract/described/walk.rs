//! A client whose answers are all checked.

use super::checker::Checker;
use crate::contract::openapi::codes::of_ledger;
use crate::support::{Answer, Service, bearer};

pub struct Walk<'a> {
    pub service: &'a Service,
    pub checker: &'a mut Checker,
    /// Header lines.
    pub auth: String,
}

impl<'a> Walk<'a> {
    pub fn new(service: &'a Service, checker: &'a mut Checker) -> Self {
        Self {
            service,
            checker,
            auth: String::new(),
        }
    }

    /// From here on requests come from the owner of the answer's token.
    pub fn enter(&mut self, answer: &Answer) {
        let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        self.auth = bearer(json["access_token"].as_str().unwrap());
    }

    /// The path in the document's form, without the query.
    #[track_caller]
    fn path_of(target: &str) -> String {
        let path = target.split('?').next().unwrap();
        match path.strip_prefix("/api/journal/") {
            Some(rest) if rest != "search" => "/api/journal/{id}".to_owned(),
            _ if path.starts_with("/api/keys/") => "/api/keys/{id}".to_owned(),
            _ if path.starts_with("/api/trades/") => of_ledger(path).to_owned(),
            _ => path.to_owned(),
        }
    }

    /// Sends a request with `headers` and the user's token; an empty `body` is none.
    #[track_caller]
    pub fn send(&mut self, method: &str, target: &str, headers: &str, body: &str) -> Answer {
        let headers = format!("{}{headers}", self.auth);
        let mut client = self.service.client();
        let answer = if body.is_empty() {
            client.request(method, target, &headers)
        } else {
            client.send_json(method, target, &headers, body)
        };
        let path = Self::path_of(target);
        self.checker.check(method, &path, &answer);
        if answer.status < 300 && !body.is_empty() {
            // An accepted body must match its description too.
            let schema = self
                .checker
                .request(method, &path)
                .expect("it takes a body");
            let value = serde_json::from_str(body).unwrap();
            self.checker
                .valid(&schema, &value, &format!("{method} {path} {body}"));
        }
        answer
    }

    /// Sends a file of trades, and expects `status`.
    #[track_caller]
    pub fn upload(&mut self, status: u16, target: &str, file: &[u8]) -> Answer {
        let answer = self.service.client().send_file(target, &self.auth, file);
        self.checker.check("POST", &Self::path_of(target), &answer);
        answer.with_status(status)
    }

    /// Same as [`send`](Self::send), and expects `status`.
    #[track_caller]
    pub fn expect(&mut self, status: u16, method: &str, target: &str, body: &str) -> Answer {
        let answer = self.send(method, target, "", body);
        let text = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, status, "{method} {target}: {}{text}", answer.head());
        answer
    }

    #[track_caller]
    pub fn get(&mut self, target: &str) -> Answer {
        self.expect(200, "GET", target, "")
    }

    /// Requests the target, and again with its tag or with any tag, which gives a 304.
    #[track_caller]
    pub fn still_stands(&mut self, target: &str) {
        for coding in ["identity", "gzip", "br"] {
            // A document may change between the two. Then its next tag is tried.
            let unchanged = (0..20).any(|_| {
                let coding = format!("Accept-Encoding: {coding}\r\n");
                let first =
                    self.service
                        .client()
                        .request("GET", target, &(self.auth.clone() + &coding));
                let tag = first.header("etag").unwrap_or("*").to_owned();
                let headers = format!("{coding}If-None-Match: {tag}\r\n");
                let whole = self.auth.clone() + &headers;
                let again = self.service.client().request("GET", target, &whole);
                if again.status == 304 {
                    self.checker.check("GET", &Self::path_of(target), &again);
                }
                again.status == 304
            });
            assert!(unchanged, "{target} {coding}");
        }
    }
}
