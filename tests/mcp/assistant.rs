//! A client of `/mcp` with an API key, in any version of the protocol.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{Answer, Service};

pub const NEW: &str = "2026-07-28";
/// The newest first. The last one has no header and no data beside the text.
pub const OLD: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
pub const VERSIONS: [&str; 4] = [NEW, OLD[0], OLD[1], OLD[2]];
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Most bytes of an answer to a call.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024;

/// Members of an object as they were written.
pub fn parts(json: &str) -> HashMap<String, Box<RawValue>> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// Sends a message as it is; `headers` are whole lines.
#[track_caller]
pub fn post(service: &Service, headers: &str, body: &str) -> Answer {
    service.client().send_json("POST", "/mcp", headers, body)
}

#[derive(Clone)]
pub struct Assistant<'a> {
    pub service: &'a Service,
    /// The header line with the key.
    pub auth: String,
    pub version: &'static str,
}

impl<'a> Assistant<'a> {
    pub fn new(service: &'a Service, auth: &str, version: &'static str) -> Self {
        Self {
            service,
            auth: auth.to_owned(),
            version,
        }
    }

    /// Header lines and body of a request; `id` is JSON.
    pub fn message(&self, id: &str, method: &str, params: &Value) -> (String, String) {
        let (mut headers, mut params) = (self.auth.clone(), params.clone());
        if self.version != OLD[2] {
            headers += &format!("MCP-Protocol-Version: {}\r\n", self.version);
        }
        if self.version == NEW {
            params["_meta"] = json!({META_VERSION: NEW, META_CAPABILITIES: {}});
            headers += &format!("Mcp-Method: {method}\r\n");
            if let Some(name) = params["name"].as_str() {
                headers += &format!("Mcp-Name: {name}\r\n");
            }
        }
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        (headers, body)
    }

    #[track_caller]
    pub fn ask(&self, method: &str, params: &Value) -> Answer {
        let (headers, body) = self.message("7", method, params);
        let answer = post(self.service, &headers, &body);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{}", answer.head());
        answer
    }

    /// The result of a request that succeeds.
    #[track_caller]
    pub fn result(&self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        assert_eq!(answer.status, 200, "{}{}", answer.head(), answer.text());
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let json: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((&json["jsonrpc"], &json["id"]), (&json!("2.0"), &json!(7)), "{json}");
        assert!(json.get("error").is_none(), "{json}");
        let new = self.version == NEW;
        assert_eq!(json["result"].get("resultType").is_some(), new, "{json}");
        json["result"].clone()
    }

    /// Status, code and message of a request that is refused.
    #[track_caller]
    pub fn refusal(&self, method: &str, params: &Value) -> (u16, i64) {
        refusal(&self.ask(method, params))
    }

    /// The tools, by name.
    pub fn tools(&self) -> Vec<Value> {
        self.result("tools/list", &json!({}))["tools"]
            .as_array()
            .unwrap()
            .clone()
    }

    pub fn names(&self) -> Vec<String> {
        self.tools()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    #[track_caller]
    pub fn call(&self, tool: &str, arguments: &Value) -> Called {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer.status, 200, "{tool}: {}", answer.text());
        assert!(answer.body.len() <= ANSWER_BYTES_MAX, "{tool}: {} bytes", answer.body.len());
        Called {
            answer,
            is_text: self.version == OLD[2],
        }
    }
}

/// Status and code of an error of JSON-RPC.
#[track_caller]
pub fn refusal(answer: &Answer) -> (u16, i64) {
    let json: Value = serde_json::from_slice(&answer.body).unwrap();
    assert!(json.get("result").is_none(), "{json}");
    assert!(!json["error"]["message"].as_str().unwrap().is_empty(), "{json}");
    assert!(answer.header("x-request-id").is_some(), "{}", answer.head());
    (answer.status, json["error"]["code"].as_i64().unwrap())
}

/// The answer to a call of a tool.
pub struct Called {
    pub answer: Answer,
    is_text: bool,
}

impl Called {
    pub fn result(&self) -> Value {
        serde_json::from_slice::<Value>(&self.answer.body).unwrap()["result"].clone()
    }

    /// The text beside the data.
    pub fn text(&self) -> String {
        let result = self.result();
        let content = result["content"].as_array().unwrap();
        assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{result}");
        content[0]["text"].as_str().unwrap().to_owned()
    }

    /// The document, byte for byte.
    #[track_caller]
    pub fn document(&self) -> String {
        let result = self.result();
        assert_eq!(result["isError"], false, "{result}");
        if self.is_text {
            assert!(result.get("structuredContent").is_none(), "{result}");
            return self.text();
        }
        let whole = parts(self.answer.text());
        parts(whole["result"].get())["structuredContent"]
            .get()
            .to_owned()
    }

    #[track_caller]
    pub fn data(&self) -> Value {
        serde_json::from_str(&self.document()).unwrap()
    }

    /// The problem document of a refusal, and the words after it.
    #[track_caller]
    pub fn refused(&self) -> (Value, String) {
        let result = self.result();
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        assert!(self.answer.header("x-request-id").is_some());
        let text = self.text();
        let mut problems = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let problem = problems.next().unwrap().unwrap();
        let rest = text[problems.byte_offset()..].trim().to_owned();
        (problem, rest)
    }

    #[track_caller]
    pub fn code(&self) -> String {
        self.refused().0["code"].as_str().unwrap().to_owned()
    }
}
