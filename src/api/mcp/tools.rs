//! Lists and calls the tools of `POST /mcp`. Each answers with what a GET route of its own answers.
//!
//! A tool calls the handler of that route inside the process, so access, limits, refusals and every
//! digit are the route's. A tool is listed for keys with the scope of its route. The schemas of
//! arguments and answers are taken from the API's description at the start.
//!
//! An answer has at most 32 KiB. Longer lists are cut, and a cursor leads on.

use std::sync::OnceLock;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::api::call::{Call, Route};
use crate::api::description::DESCRIPTION;
use crate::api::lane::compute;
use crate::api::mcp::arguments;
use crate::api::mcp::arguments::{Argument, Fault, Judged};
use crate::api::mcp::pages::{DOCUMENT_BYTES_MAX, cost, cursor_invalid, page};
use crate::api::mcp::route_pages::{RoutePages, Step};
use crate::api::mcp::schemas::{alone, input_of, output_of};
use crate::api::mcp::tool::Lists::{Cut, Paged, Short};
use crate::api::mcp::tool::{TOOLS, Tool};
use crate::api::portfolio_errors;
use crate::api::state::State;
use crate::base::json::{Member, members};
use crate::http::message::head::{HEAD_BYTES_MAX, Head, Parsed};
use crate::http::{Method, Problem, Response};

/// Longest list of tools whose schemas describe their members.
const DESCRIBED_BYTES_MAX: usize = 49 * 1024;

/// Longest value that a summary repeats: a time with its offset, a figure, a word.
const NOTED_BYTES_MAX: usize = 30;

static PREPARED: OnceLock<Tools> = OnceLock::new();

/// The tools with their definitions.
pub(crate) struct Tools(Vec<Defined>);

struct Defined {
    tool: &'static Tool,
    routes: Vec<&'static Route>,
    arguments: Vec<Argument>,
    /// The definition up to the schema of its answers.
    begin: String,
    /// The schema of its answers, with descriptions and without.
    output: [String; 2],
}

/// A call of a tool.
pub(super) struct Order<'a> {
    pub state: &'a State,
    pub call: &'a Call<'a>,
    pub arguments: &'a [Member<'a>],
    /// The document will stand in a text, where its quotes are escaped.
    pub is_text: bool,
}

/// A tool's answer.
pub(super) struct Answer {
    /// JSON, at most as long as one answer may be.
    pub document: String,
    /// One line.
    pub summary: String,
}

impl Tools {
    /// Makes the tools of these routes, once for the life of the process: some milliseconds. Called
    /// at the start, not on the edge.
    pub(in crate::api) fn prepare(routes: &'static [Route]) {
        PREPARED.get_or_init(|| Self::of(routes));
    }

    /// The tools of the program.
    pub(super) fn prepared() -> &'static Self {
        PREPARED
            .get()
            .expect("the service prepares them when it is made")
    }

    /// Takes the definitions from the API's description, and the handlers from `routes`.
    fn of(routes: &'static [Route]) -> Self {
        let api: Value = serde_json::from_slice(DESCRIPTION).expect("a test makes it");
        Self(
            TOOLS
                .iter()
                .map(|tool| Defined::of(tool, routes, &api))
                .collect(),
        )
    }

    fn known_to<'a>(&'a self, call: &Call<'_>) -> impl Iterator<Item = &'a Defined> {
        self.0.iter().filter(move |defined| defined.is_for(call))
    }

    /// The tools that the caller's key may use, as the elements of a JSON array.
    pub(super) fn listed(&self, call: &Call<'_>, with_output: bool) -> String {
        let bytes: usize = self
            .known_to(call)
            .map(|tool| tool.begin.len() + tool.output[0].len())
            .sum();
        let output = usize::from(bytes > DESCRIBED_BYTES_MAX);
        let tools = self.known_to(call).map(
            |Defined {
                 begin,
                 output: schemas,
                 ..
             }| match with_output {
                true => format!(r#"{begin},"outputSchema":{}}}"#, schemas[output]),
                false => format!("{begin}}}"),
            },
        );
        tools.collect::<Vec<_>>().join(",")
    }

    /// Calls a tool; `None` if there is none of this name for the caller's key. Parks as its
    /// routes do, and for a lane that cuts what is long.
    pub(super) fn call(
        &self,
        name: &str,
        order: &Order<'_>,
        response: &mut Response<'_>,
    ) -> Option<Result<Answer, Problem>> {
        let defined = self
            .known_to(order.call)
            .find(|defined| defined.tool.name == name)?;
        Some(defined.answer(order, response))
    }
}

impl Defined {
    fn of(tool: &'static Tool, routes: &'static [Route], api: &Value) -> Self {
        let routes = tool.routes.iter().map(|(_, path)| {
            let is_it = |route: &&Route| route.method == Method::Get && route.path == *path;
            routes
                .iter()
                .find(is_it)
                .expect("every tool has its routes")
        });
        let routes: Vec<&Route> = routes.collect();
        let input = alone(input_of(tool, api), api, false);
        let arguments = arguments::of_schema(&input);
        let begin = json!({
            "name": tool.name,
            "title": routes[0].doc,
            "description": tool.says,
            "inputSchema": input,
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        });
        let mut begin = begin.to_string();
        begin.pop();
        let output = output_of(tool, api);
        let output = [false, true].map(|is_bare| alone(output.clone(), api, is_bare).to_string());
        Self {
            tool,
            routes,
            arguments,
            begin,
            output,
        }
    }

    /// Whether the caller's key may use all of its routes.
    fn is_for(&self, call: &Call<'_>) -> bool {
        let key = call.key();
        key.is_some_and(|key| {
            self.routes
                .iter()
                .all(|route| route.keys.admits(key).is_ok())
        })
    }

    fn answer(&self, order: &Order<'_>, response: &mut Response<'_>) -> Result<Answer, Problem> {
        let Judged {
            parameters: mut given,
            fault,
        } = arguments::judged(&self.arguments, order.arguments);
        if let Some(fault) = fault {
            return Err(self.refusal(order, given, fault, response));
        }
        let is_text = order.is_text;
        let cursor = self.take_cursor(&mut given);
        let document = self.document(order, &given, response)?;
        let is_whole = match self.tool.lists {
            Paged(list) => list.may_be_whole(cursor.as_deref(), &given),
            Short | Cut(_) => cursor.is_none(),
        };
        if is_whole && cost(&document, is_text) <= DOCUMENT_BYTES_MAX {
            return Ok(self.told(document, ""));
        }
        match self.tool.lists {
            Short => Err(portfolio_errors::export_too_long()),
            Cut(lists) => {
                let cut = move || page(&document, lists, cursor.as_deref(), is_text);
                let (document, shown) = compute(&order.state.portfolio.lane, cut)?;
                Ok(self.told(document, &shown))
            }
            Paged(list) => self.page_of_route(order, list, given, cursor, document, response),
        }
    }

    /// Takes out the cursor that is the tool's own and not its route's.
    fn take_cursor(&self, given: &mut Vec<(String, String)>) -> Option<String> {
        let is_own = |text: &str| match self.tool.lists {
            Short => false,
            Cut(_) => true,
            Paged(list) => list.has_own_cursor(text),
        };
        let at = given
            .iter()
            .position(|(name, text)| name == "cursor" && is_own(text))?;
        Some(given.swap_remove(at).1)
    }

    /// A part of what the route has pages of; `document` is one of these.
    fn page_of_route(
        &self,
        order: &Order<'_>,
        list: RoutePages,
        mut given: Vec<(String, String)>,
        cursor: Option<String>,
        document: String,
        response: &mut Response<'_>,
    ) -> Result<Answer, Problem> {
        let is_text = order.is_text;
        let lane = &order.state.portfolio.lane;
        let is_first = list.may_be_whole(cursor.as_deref(), &given);
        let step = move || list.step(&document, cursor.as_deref(), is_first, is_text);
        let fewer = match compute(lane, step)? {
            Step::Done { document, shown } => return Ok(self.told(document, &shown)),
            Step::Ask(fewer) => fewer,
        };
        given.retain(|(name, _)| name != "limit");
        given.push(("limit".into(), fewer.limit().to_string()));
        let document = self.document(order, &given, response)?;
        let (document, shown) = compute(lane, move || list.rows(document, fewer, is_text))?;
        Ok(self.told(document, &shown))
    }

    /// The refusal of an argument. The route's own is more exact where it can have the argument.
    fn refusal(
        &self,
        order: &Order<'_>,
        mut given: Vec<(String, String)>,
        fault: Fault,
        response: &mut Response<'_>,
    ) -> Problem {
        let of_tool = matches!(self.tool.lists, Cut(_)).then_some("cursor");
        self.take_cursor(&mut given);
        if of_tool == Some(&*fault.name) && fault.is_for_route() {
            return fault.refused(Some(cursor_invalid()));
        }
        let own = fault
            .is_for_route()
            .then(|| self.document(order, &given, response).err());
        fault.refused(own.flatten())
    }

    /// What the routes answer. The first one takes the arguments.
    fn document(
        &self,
        order: &Order<'_>,
        given: &[(String, String)],
        response: &mut Response<'_>,
    ) -> Result<String, Problem> {
        let mut documents = Vec::new();
        for (at, route) in self.routes.iter().enumerate() {
            documents.push(read(order, route, if at == 0 { given } else { &[] }, response)?);
        }
        if let [document] = &mut documents[..] {
            return Ok(std::mem::take(document));
        }
        let members = self.tool.routes.iter().zip(&documents);
        let members = members.map(|((name, _), document)| format!(r#""{name}":{document}"#));
        Ok(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
    }

    /// The answer with its summary. `shown` says which part of the lists it has.
    fn told(&self, document: String, shown: &str) -> Answer {
        let mut summary = format!("{}{shown}", self.tool.name);
        for (name, raw) in members(document.as_bytes()).unwrap_or_default() {
            for (inner, raw) in members(raw.as_bytes()).unwrap_or_default() {
                note(&mut summary, &format!("{name}.{inner}"), raw);
            }
            note(&mut summary, &name, raw);
        }
        summary.push_str("; all of it in structuredContent");
        Answer { document, summary }
    }
}

/// Adds a figure, a time or a word to the summary. Lists have the texts from outside.
fn note(summary: &mut String, name: &str, raw: &str) {
    if raw.len() <= NOTED_BYTES_MAX && !raw.starts_with(['{', '[']) {
        summary.push_str(&format!("; {name} {}", raw.trim_matches('"')));
    }
}

/// Calls the route's handler for the same caller, and returns the body that it answers.
fn read(
    order: &Order<'_>,
    route: &Route,
    given: &[(String, String)],
    response: &mut Response<'_>,
) -> Result<String, Problem> {
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let query: Vec<String> = given
        .iter()
        .map(|(name, text)| format!("{name}={}", encoded(text)))
        .collect();
    let query = query.join("&");
    let bytes = format!("GET {}?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n", route.path);
    let mut head = Head::default();
    match head.parse(bytes.as_bytes(), 1, HEAD_BYTES_MAX) {
        Parsed::Complete => {}
        Parsed::Fault(fault) => return Err(fault.into()),
        Parsed::Partial => return Err(Problem::internal()),
    }
    let request = order.call.request.reading_instead(bytes.as_bytes(), &head);
    let call = Call {
        request: &request,
        caller: order.call.caller.clone(),
        path_id: None,
    };
    let body = response.taken_back(|response| (route.run)(order.state, &call, response))?;
    String::from_utf8(body).map_err(|error| Problem::internal().because(error))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::api::mcp::pages::{NEXT_CURSOR, list};
    use crate::api::routes::ROUTES;

    #[test]
    fn schemas_stand_alone_and_ask_for_no_multiple() {
        let api: Value = serde_json::from_slice(DESCRIPTION).unwrap();
        let mut bytes = [0, 0];
        for defined in Tools::of(ROUTES).0 {
            let begin: Value = serde_json::from_str(&format!("{}}}", defined.begin)).unwrap();
            bytes[1] += defined.begin.len();
            for (at, output) in defined.output.iter().enumerate() {
                bytes[at] += output.len();
                assert!(!output.contains("multipleOf") && !output.contains("components"));
                assert_eq!(output.contains("\"description\":"), at == 0);
                let schema: Value = serde_json::from_str(output).unwrap();
                assert_eq!(schema["type"], "object", "{}", defined.tool.name);
                jsonschema::options().build(&schema).unwrap();
            }
            let input = &begin["inputSchema"];
            jsonschema::options().build(input).unwrap();
            assert_eq!(input["additionalProperties"], false);
            for Argument { name: argument, .. } in &defined.arguments {
                assert!(input["properties"][argument]["description"].is_string(), "{argument}");
            }
            for (_, path) in defined.tool.routes {
                assert!(api["paths"][path]["get"].is_object(), "{path}");
            }
        }
        assert!(bytes[0] > DESCRIBED_BYTES_MAX, "{bytes:?}: all may keep their descriptions");
        assert!(bytes[1] < DESCRIBED_BYTES_MAX, "{bytes:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pages_have_every_row_once_and_in_order(
            sizes in vec(1_usize..3_000, 0..12),
            more in vec(1_usize..3_000, 0..12),
            is_text in any::<bool>(),
        ) {
            let rows = |sizes: &[usize]| -> Vec<String> {
                sizes.iter().map(|size| format!("\"{}\"", "\\\"".repeat(*size))).collect()
            };
            let first = rows(&sizes);
            let second = rows(&more);
            let whole = format!(
                r#"{{"a":[{}],"n":1.50,"s":{{"t":0,"b":[{}]}}}}"#,
                first.join(","),
                second.join(",")
            );
            let mut cursor = None::<String>;
            let mut seen = [Vec::new(), Vec::new()];
            loop {
                if cursor.is_some() || cost(&whole, is_text) > DOCUMENT_BYTES_MAX {
                    let part = page(&whole, &["a", "s.b"], cursor.as_deref(), is_text);
                    let (part, _) = part.unwrap();
                    prop_assert!(cost(&part, is_text) <= DOCUMENT_BYTES_MAX, "{}", part.len());
                    let has_rest = part.contains(r#""n":1.50,"s":{"t":0,"#);
                    prop_assert!(has_rest);
                    for (path, seen) in ["a", "s.b"].iter().zip(&mut seen) {
                        let (elements, _) = list(&part, path).unwrap();
                        seen.extend(elements.iter().map(|element| element.get().to_owned()));
                    }
                    let read: Value = serde_json::from_str(&part).unwrap();
                    cursor = read[NEXT_CURSOR].as_str().map(str::to_owned);
                    if cursor.is_some() {
                        continue;
                    }
                    prop_assert_eq!(&seen, &[first, second]);
                }
                break;
            }
        }
    }

    #[test]
    fn a_cursor_leads_into_the_list_that_it_is_of() {
        for cursor in [
            "",
            "1",
            "2-2",
            "9-2",
            "0-3",
            "-1-2",
            "1-2-",
            "a-2",
            "1-99999999999999999999",
        ] {
            let problem = page(r#"{"a":[1,2]}"#, &["a"], Some(cursor), false).unwrap_err();
            assert_eq!((problem.status, problem.code), (400, "cursor_invalid"), "{cursor}");
        }
        let (part, line) = page(r#"{"a":[1,2]}"#, &["a"], Some("1-2"), false).unwrap();
        assert_eq!((&*part, &*line), (r#"{"a":[2]}"#, ", rows 2 to 2 of 2"));
    }
}
