//! `bhav token a|b`: the link, the code, and the result.

use crate::support::{OnTerminal, Ran, Scene, Service, TRADING, bhav, run, run_with};
fn token(service: &Service, broker: &str, env: &[(&str, &str)], input: &str) -> Ran {
    let url = format!("--url=http://{}", service.0.address());
    run_with(bhav(&["token", broker, &url]).envs(env.iter().copied()), input)
}

#[test]
fn a_pasted_address_gives_the_service_broker_a_s_token() {
    let (scene, service) = Scene::trading_on(Scene::config_without_tokens);
    let code = scene.request_token();
    let pasted = format!("https://127.0.0.1/?action=login&request_token={code}&status=success\n");
    let ran = token(&service, "a", &[("BROKERA_API_KEY", "simkeya")], &pasted).with_code(0);
    assert_eq!(ran.out, "broker A: the token is valid until 2026-11-21 06:00 IST\n");
    let link = "https://kite.zerodha.com/connect/login?v=3&api_key=simkeya";
    assert!(ran.err.contains(link), "{}", ran.err);
    assert!(!ran.err.contains(&code), "{}", ran.err);
    assert_eq!(service.get("/brokera/status").json()["valid"], true);
}

#[test]
fn a_bare_code_gives_it_broker_b_s_and_a_wrong_one_is_told() {
    let (scene, service) = Scene::trading_on(Scene::config_without_tokens);
    let key = [("BROKERB_API_KEY", "sim+key=b&1")];
    let ran = token(&service, "b", &key, "00000000\n");
    assert_eq!((ran.code, ran.out.as_str()), (Some(65), ""), "{}", ran.err);
    assert!(
        ran.err
            .contains("does not accept the code: wrong, used or expired"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("00000000"), "{}", ran.err);
    let ran = token(&service, "b", &key, &scene.api_session()).with_code(0);
    assert_eq!(ran.out, "broker B: the token is valid until 2026-11-21 00:00 IST\n");
    assert!(ran.err.contains("login?api_key=sim%2Bkey%3Db%261\n"), "{}", ran.err);
}

#[test]
fn the_administrators_secret_goes_along_and_its_lack_is_told() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config_without_tokens();
    config.broker_b.admin_secret = Some("s3cr3t \"quoted\"".into());
    let service = scene.start_with(&config);
    let ran = token(&service, "b", &[], &scene.api_session());
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{}", ran.err);
    assert!(ran.err.contains("BROKERB_ADMIN_SECRET"), "{}", ran.err);
    assert!(ran.err.contains("api_key=YOUR_API_KEY"), "{}", ran.err);
    assert!(ran.err.contains("BROKERB_API_KEY_FILE"), "{}", ran.err);
    let secret = [("BROKERB_ADMIN_SECRET", "s3cr3t \"quoted\"")];
    let ran = token(&service, "b", &secret, &scene.api_session()).with_code(0);
    assert!(!ran.err.contains("s3cr3t") && !ran.out.contains("s3cr3t"));
}

#[test]
fn a_code_in_the_command_line_is_taken_with_a_warning() {
    let (scene, service) = Scene::trading_on(Scene::config_without_tokens);
    let url = format!("--url=http://{}", service.0.address());
    let ran = run(&mut bhav(&["token", "a", &url, "--code", &scene.request_token()])).with_code(0);
    assert!(
        ran.err
            .contains("warning: a code in the command line is visible"),
        "{}",
        ran.err
    );
}

#[test]
fn a_terminal_does_not_show_the_code() {
    let mut terminal = OnTerminal::start(&mut bhav(&["token", "a", "--url=unix:nowhere"]));
    terminal.answer("(not shown): ", "S3CRETCODE");
    let (ran, shown) = terminal.end();
    assert_eq!(ran.code, Some(69), "it was read, and nobody is there: {}", ran.err);
    assert!(!shown.contains("S3CRET"), "{shown}");
}

#[test]
fn what_holds_no_code_is_not_sent() {
    for (broker, input, name) in [
        ("a", "", "request_token"),
        ("a", "https://127.0.0.1/?status=cancelled\n", "request_token"),
        ("b", "https://127.0.0.1/\n", "apisession"),
    ] {
        let ran = run_with(&mut bhav(&["token", broker, "--url=unix:nowhere"]), input);
        assert_eq!((ran.code, ran.out.as_str()), (Some(65), ""), "{input}");
        assert!(ran.err.contains(&format!("there is no {name} in this")), "{}", ran.err);
    }
    let long = "x".repeat(5_000);
    let ran = run_with(&mut bhav(&["token", "a", "--url=unix:nowhere"]), &long).with_code(65);
    assert!(ran.err.contains("more than 4096 bytes"), "{}", ran.err);
}

#[test]
fn a_service_that_is_not_there_is_69() {
    let ran = run_with(&mut bhav(&["token", "a", "--url=unix:nowhere"]), "abc\n");
    assert_eq!((ran.code, ran.out.as_str()), (Some(69), ""));
    assert!(ran.err.contains("systemctl status bhav"), "{}", ran.err);
    assert_eq!(run(&mut bhav(&["token", "c"])).code, Some(64));
}
