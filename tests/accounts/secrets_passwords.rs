//! The paths of passwords: every route that takes one, with success and refusal.

use sonic_rs::JsonValueTrait;

use super::secrets::World;
use super::secrets_paths::post;
use crate::support::bearer;
use crate::support::canaries::escaped;

/// Each password is wiped once it is hashed or refused.
pub fn passwords(world: &World) {
    let make = |path: &str| world.canaries.make("password", path);
    let auth = |route: &str, headers: &str, body: &str, status: u16| {
        let answer = post(world, &format!("/api/auth/{route}"), headers, body);
        assert_eq!(answer.status, status, "{route} {body}: {}", answer.text());
        answer
    };
    let account =
        |password: &str| format!(r#"{{"email":"passwords@example.com","password":"{password}"}}"#);
    let (first, second) = (make("the first"), make("the second"));
    auth("register", "", &account(&first), 201);
    auth("register", "", &account(&make("taken")), 400);
    auth("register", "", &account(&make("too long").repeat(6)), 400);
    let answer = auth("login", "", &account(&escaped(&first)), 200);
    let user = bearer(answer.json()["access_token"].as_str().unwrap());
    auth("login", "", &account(&make("wrong")), 401);
    let nobody = account(&make("nobody's")).replace("passwords@", "nobody@");
    auth("login", "", &nobody, 401);
    auth("login", "", &account(&make("broken")).replace('}', ""), 400);
    let change = |current: &str, new: &str| {
        format!(r#"{{"current_password":"{current}","new_password":"{new}"}}"#)
    };
    auth("password", &user, &change(&make("wrong"), &make("never taken")), 401);
    let answer = auth("password", &user, &change(&first, &second), 200);
    let token = answer.json()["access_token"].as_str().map(bearer);
    let user = token.unwrap_or_else(|| {
        let answer = auth("login", "", &account(&second), 200);
        bearer(answer.json()["access_token"].as_str().unwrap())
    });
    let erase = |password: &str, status: u16| {
        let body = format!(r#"{{"password":"{password}"}}"#);
        let answer = world
            .client()
            .send_json("DELETE", "/api/auth/account", &user, &body);
        assert_eq!(answer.status, status, "{}", answer.text());
    };
    erase(&make("wrong"), 401);
    erase(&second, 200);
}
