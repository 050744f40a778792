//! The brokers' login pages, for a person's browser: they say that they are simulated, ask for a
//! user id, and send the browser back to the service with a one-time code as each broker does.
//! Broker A redirects with the code in the query; broker B has the browser post a form. Connection
//! threads run this.
//!
//! A real app has its return address registered. Here the page shows the address, so that a person
//! whose browser reaches the service under another name can change it.

use crate::sim::routes::LOGIN_A;
use crate::sim::server::message::{Answer, Content, pairs};
use crate::sim::world::{Call, is_or_follows};

const PAGE: &str = include_str!("login_page.html");
/// Longest user id or return address that is accepted.
const FIELD_BYTES_MAX: usize = 512;

/// The differences between the two brokers' pages.
struct Broker<'a> {
    name: &'static str,
    return_path: &'static str,
    api_key: &'a str,
    secret: &'a str,
    user_id: &'a str,
}

/// `GET` shows the page, `POST` of its form logs in.
pub(crate) fn answer(call: &Call<'_>, route: &str) -> Answer {
    let app_a = &call.world.settings.broker_a;
    let app_b = &call.world.settings.broker_b;
    let (name, return_path, api_key, secret, user_id) = match route {
        LOGIN_A => ("broker A", "/return/a", &app_a.api_key, &app_a.api_secret, &app_a.user_id),
        _ => ("broker B", "/return/b", &app_b.api_key, &app_b.secret_key, &app_b.user_id),
    };
    let broker = Broker {
        name,
        return_path,
        api_key,
        secret,
        user_id,
    };
    let knows = |key: &String| is_or_follows(broker.api_key, key);
    let Some(api_key) = value(call, "api_key").filter(knows) else {
        return unknown_app(&broker);
    };
    match call.request.method.as_str() {
        "GET" => {
            let root = call.world.returns_to.lock().clone();
            shown(200, &broker, &form(&broker, &api_key, &format!("{root}{}", broker.return_path)))
        }
        "POST" => log_in(call, route, &broker).unwrap_or_else(|why| refused(&broker, why)),
        _ => Answer::text(405, "text/plain; charset=utf-8", "GET or POST"),
    }
}

/// A value of the query or of the form. The content type of the form is not checked.
fn value(call: &Call<'_>, name: &str) -> Option<String> {
    let body = std::str::from_utf8(&call.request.body)
        .map(pairs)
        .unwrap_or_default();
    let all = call.request.query_pairs().into_iter().chain(body);
    all.into_iter()
        .find(|(given, _)| given == name)
        .map(|(_, value)| value)
}

fn log_in(call: &Call<'_>, route: &str, broker: &Broker<'_>) -> Result<Answer, &'static str> {
    let field = |name| {
        let given = value(call, name).filter(|text| (1..=FIELD_BYTES_MAX).contains(&text.len()));
        // The value becomes part of a header, so it must not contain a line end.
        given.filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()))
    };
    let user_id = field("user_id").ok_or("The user id has 1 to 512 letters and no spaces.")?;
    let back = field("redirect_url")
        .filter(|url| url.starts_with("http://") || url.starts_with("https://"))
        .ok_or("The redirect URL is an address that begins with http:// or https://.")?;
    if route == LOGIN_A {
        let token = call
            .world
            .broker_a
            .lock()
            .issue_request_token(user_id, call.now);
        let mark = if back.contains('?') { '&' } else { '?' };
        let query = format!("action=login&type=login&status=success&request_token={token}");
        let content = Content::Moved(format!("{back}{mark}{query}"));
        return Ok(Answer {
            status: 302,
            content,
            rejected: false,
        });
    }
    let session = call
        .world
        .broker_b
        .lock()
        .issue_api_session(user_id, call.now);
    let content = format!(
        "<form method=\"post\" action=\"{}\">\
         <input type=\"hidden\" name=\"API_Session\" value=\"{session}\">\
         <p>You are logged in.</p><button>Back to the app</button></form>\
         <script>document.forms[0].submit()</script>",
        escaped(&back)
    );
    Ok(shown(200, broker, &content))
}

fn form(broker: &Broker<'_>, api_key: &str, back: &str) -> String {
    let api_key = escaped(api_key);
    let user = escaped(broker.user_id);
    let back = escaped(back);
    format!(
        "<form method=\"post\">\
         <p>App: <code>{api_key}</code></p>\
         <label for=\"user\">User id</label>\
         <input id=\"user\" name=\"user_id\" value=\"{user}\" autocomplete=\"off\" required>\
         <small>Another id has another portfolio.</small>\
         <label for=\"back\">Redirect URL</label>\
         <input id=\"back\" name=\"redirect_url\" value=\"{back}\" type=\"url\" required>\
         <small>At the broker it is registered with the app and cannot be chosen here.</small>\
         <button>Log in</button></form>"
    )
}

fn unknown_app(broker: &Broker<'_>) -> Answer {
    let content = format!(
        "<p><b>No app has this API key.</b> The simulator’s app has the key \
         <code>{}-1</code> and the secret <code>{}</code>. Go back and type this key.</p>",
        escaped(broker.api_key),
        escaped(broker.secret)
    );
    shown(400, broker, &content)
}

fn refused(broker: &Broker<'_>, why: &str) -> Answer {
    shown(400, broker, &format!("<p><b>{why}</b> Go back and change it.</p>"))
}

fn shown(status: u16, broker: &Broker<'_>, content: &str) -> Answer {
    let page = PAGE
        .replace("{broker}", broker.name)
        .replace("{content}", content);
    Answer::text(status, "text/html; charset=utf-8", &page)
}

/// Escapes the text of an element or of a quoted attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use crate::sim::testing::{Got, get, send, sim};
    use crate::sim::{Sim, SimSettings};

    const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
    const A: &str = "/a/connect/login?v=3&api_key=simkeya-1";
    const B: &str = "/b/apiuser/login?api_key=sim%2Bkey%3Db%261";

    fn log_in(sim: &Sim, page: &str, user: &str, back: &str) -> Got {
        let body = format!("user_id={user}&redirect_url={back}");
        send(sim.addr(), "POST", page, FORM, &body).unwrap()
    }

    /// Exchanges a request token, with the checksum that the broker documents.
    fn exchange(sim: &Sim, token: &str) -> Got {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(format!("simkeya-1{token}simsecreta"));
        let sum: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let body = format!("api_key=simkeya-1&request_token={token}&checksum={sum}");
        let headers = format!("{FORM}X-Kite-Version: 3\r\n");
        send(sim.addr(), "POST", "/a/session/token", &headers, &body).unwrap()
    }

    #[test]
    fn the_pages_say_that_they_are_simulated_and_where_they_lead() {
        let (sim, _) = sim();
        sim.return_logins_to("http://localhost:9");
        for (page, back) in [
            (A, "http://localhost:9/return/a"),
            (B, "http://localhost:9/return/b"),
        ] {
            let got = get(&sim, page, "");
            assert_eq!(got.status, 200);
            assert_eq!(got.header("Content-Type"), Some("text/html; charset=utf-8"));
            assert!(
                got.text().contains("Simulated") && got.text().contains(back),
                "{}",
                got.text()
            );
        }
        assert!(
            get(&sim, B, "")
                .text()
                .contains("<code>sim+key=b&amp;1</code>")
        );
        assert_eq!(SimSettings::default().returns_to, "http://127.0.0.1:8080");
    }

    #[test]
    fn broker_a_redirects_with_a_code_that_works_once() {
        let (sim, _) = sim();
        let got = log_in(&sim, A, "SA0007", "http%3A%2F%2Flocalhost%3A9%2Freturn%2Fa");
        assert_eq!(got.status, 302);
        let location = got.header("Location").unwrap();
        let (back, query) = location.split_once('?').unwrap();
        assert_eq!(back, "http://localhost:9/return/a");
        let token = query.strip_prefix("action=login&type=login&status=success&request_token=");
        let token = token.unwrap();
        let session = exchange(&sim, token);
        assert!(session.text().contains("SA0007"), "{}", session.text());
        assert_eq!(exchange(&sim, token).status, 403);
        let more = log_in(&sim, A, "SA0007", "http%3A%2F%2Fx%2F%3Fy%3D1");
        assert!(
            more.header("Location")
                .unwrap()
                .starts_with("http://x/?y=1&action=login")
        );
    }

    #[test]
    fn broker_b_has_the_browser_post_the_code() {
        let (sim, _) = sim();
        let got = log_in(&sim, B, "SB000007", "http%3A%2F%2Flocalhost%3A9%2Freturn%2Fb");
        let text = got.text();
        assert!(
            text.contains("method=\"post\" action=\"http://localhost:9/return/b\""),
            "{text}"
        );
        let (_, rest) = text.split_once("name=\"API_Session\" value=\"").unwrap();
        let session = rest.split('"').next().unwrap();
        let body = format!("{{\"SessionToken\":\"{session}\",\"AppKey\":\"sim+key=b&1\"}}");
        let json = "Content-Type: application/json\r\n";
        let details = send(sim.addr(), "GET", "/b/customerdetails", json, &body).unwrap();
        assert!(details.text().contains("SB000007"), "{}", details.text());
    }

    #[test]
    fn an_unknown_app_and_what_would_break_a_header_are_refused() {
        let (sim, _) = sim();
        for page in [
            "/a/connect/login?v=3&api_key=mine",
            "/a/connect/login",
            "/b/apiuser/login",
        ] {
            let got = get(&sim, page, "");
            assert_eq!(got.status, 400);
            assert!(got.text().contains("No app has this API key"));
        }
        for (user, back) in [
            ("SA0001", "javascript%3Aalert(1)"),
            ("SA0001", "http%3A%2F%2Fx%0D%0ASet-Cookie%3Ay"),
            ("SA%200001", "http%3A%2F%2Fx"),
            ("", "http%3A%2F%2Fx"),
            (&"S".repeat(513), "http%3A%2F%2Fx"),
        ] {
            let got = log_in(&sim, A, user, back);
            assert_eq!((got.status, got.header("Location")), (400, None), "{user} {back}");
        }
        let quoted = log_in(&sim, B, "SB1", "http%3A%2F%2Fx%22%3E%3Cscript%3E");
        assert!(
            quoted
                .text()
                .contains("action=\"http://x&quot;&gt;&lt;script&gt;\"")
        );
    }
}
