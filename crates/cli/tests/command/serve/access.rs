//! Who gets in, and what is refused before anything happens.

use super::{Served, serve};
use crate::capture::healthy;
use crate::run::Desk;

fn served() -> Option<Served> {
    let desk = Desk::new();
    desk.file("a.pcap", &healthy());
    serve(desk, &[])
}

#[test]
fn without_the_token_there_is_nothing() {
    let Some(served) = served() else { return };
    let cookieless = |path: &str| served.send(&served.head("GET", path, &[], None));
    for path in [
        "/",
        "/?token=",
        "/?token=0123456789abcdef0123456789abcdef",
        "/api/state",
        "/api/jobs",
        "/reports/1",
        "/x",
    ] {
        let answer = cookieless(path);
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
        assert!(!answer.text().contains("a.pcap") && answer.header("set-cookie").is_none(), "{answer:?}");
    }
    // The token is no cookie, and good for the page alone.
    let token = format!("/api/state?token={}", served.token);
    assert_eq!(cookieless(&token).status, 401);
    let (name, session) = served.cookie.split_once('=').expect("a pair");
    for cookie in
        [format!("{name}={}", served.token), format!("{name}={}", &session[1..]), format!("{name}=")]
    {
        let answer = served.send(&served.head("GET", "/api/state", &[("Cookie", &cookie)], None));
        assert_eq!(answer.status, 401, "{cookie}");
    }
    let entered = cookieless(&format!("/?token={}", served.token));
    let cookie = entered.header("set-cookie").expect("a cookie");
    assert!(
        entered.status == 200 && cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{entered:?}"
    );
    assert_eq!(served.get("/api/state").status, 200);
}

#[test]
fn each_answer_tells_the_browser_to_do_nothing_else_with_it() {
    let Some(served) = served() else { return };
    let page = served.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").expect("a policy");
    for part in [
        "default-src 'none'",
        "script-src 'sha256-",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{part}: {policy}");
    }
    assert!(!policy.contains("unsafe-inline"), "{policy}");
    let refused = served.send(&served.head("GET", "/", &[], None));
    for answer in
        [&page, &served.get("/api/state"), &served.get("/nothing"), &served.get("/reports/1"), &refused]
    {
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("x-frame-options", "DENY"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}: {answer:?}");
        }
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

/// A name that an attacker points to 127.0.0.1 makes the attacker's page this server's.
#[test]
fn names_that_could_be_anybodys_are_refused() {
    let Some(served) = served() else { return };
    let port = served.host.split(':').nth(1).expect("a port");
    let status = |target: &str, hosts: &[&str]| {
        let mut request =
            format!("GET {target} HTTP/1.1\r\nConnection: close\r\nCookie: {}\r\n", served.cookie);
        for host in hosts {
            request += &format!("Host: {host}\r\n");
        }
        served.send((request + "\r\n").as_bytes()).status
    };
    let localhost = format!("localhost:{port}");
    for host in [served.host.as_str(), &localhost, "localhost:9999", "[::1]:80"] {
        assert_eq!(status("/api/state", &[host]), 200, "{host}");
    }
    let rebound = format!("rebound.example:{port}");
    for hosts in [
        &[rebound.as_str()][..],
        &["127.0.0.1.rebound.example"],
        &["user@127.0.0.1"],
        &["10.0.0.1"],
        &["127.0.0.1", "127.0.0.1"],
        &[""],
        &[],
    ] {
        let status = status("/api/state", hosts);
        assert!(status == 421 || status == 400, "{hosts:?}: {status}");
    }
    let absolute = format!("http://rebound.example:{port}/api/state");
    assert_eq!(status(&absolute, &[&served.host]), 421);
    let with_token = format!("/?token={}", served.token);
    assert_eq!(status(&with_token, &["rebound.example"]), 421);
}

/// Another page in the same browser may send requests, with the cookie where it is of the same site: any port of this machine.
#[test]
fn other_pages_change_and_read_nothing() {
    let Some(served) = served() else { return };
    let (cookie, own) = (("Cookie", served.cookie.as_str()), format!("http://{}", served.host));
    let body = r#"{"capture":"a.pcap"}"#;
    let requests = [
        ("POST", "/api/jobs", body),
        ("PUT", "/api/captures/b.pcap", "\u{a}\u{d}\u{d}\u{a}"),
        ("DELETE", "/api/reports/1", ""),
        ("DELETE", "/api/jobs/0", ""),
        ("POST", "/api/live", r#"{"interface":"any","filter":""}"#),
        ("DELETE", "/api/live", ""),
    ];
    let elsewhere: [&[(&str, &str)]; 8] = [
        &[cookie],
        &[cookie, ("Origin", "http://127.0.0.1:1")],
        &[cookie, ("Origin", "http://evil.example")],
        &[cookie, ("Origin", "null")],
        &[cookie, ("Sec-Fetch-Site", "cross-site")],
        &[cookie, ("Sec-Fetch-Site", "same-site")],
        &[cookie, ("Origin", &own), ("Sec-Fetch-Site", "same-site")],
        &[cookie, ("Origin", "http://evil.example"), ("Sec-Fetch-Site", "same-origin")],
    ];
    for (method, path, body) in requests {
        for headers in elsewhere {
            let mut request = served.head(method, path, headers, Some(body.len()));
            request.extend(body.as_bytes());
            let answer = served.send(&request);
            assert_eq!(answer.status, 403, "{method} {path} {headers:?}: {answer:?}");
        }
    }
    let state = served.state();
    assert_eq!((&state["jobs"], served.captures()), (&serde_json::json!([]), vec!["a.pcap".to_owned()]));
    // A script or a picture in another page.
    for headers in [
        &[cookie, ("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors")][..],
        &[cookie, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors")],
        &[cookie, ("Origin", "null")],
    ] {
        assert_eq!(served.send(&served.head("GET", "/api/state", headers, None)).status, 403, "{headers:?}");
    }
}

#[test]
fn what_is_not_there_is_said_so() {
    let Some(served) = served() else { return };
    for path in [
        "/nothing",
        "/api",
        "/reports/0",
        "/reports/-1",
        "/reports/x",
        "/reports/99999999999999999999",
        "/api/comparison/1/2",
    ] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
    assert_eq!(served.ask("POST", "/", b"").status, 405);
    assert_eq!(served.ask("DELETE", "/api/jobs/0", b"").status, 404);
    assert_eq!(served.ask("DELETE", "/api/live", b"").status, 404);
    for nonsense in [&b""[..], b"{", b"[]", b"{\"capture\":5}", b"\xff\xfe"] {
        assert_eq!(served.ask("POST", "/api/jobs", nonsense).status, 400, "{nonsense:?}");
    }
    assert_eq!(served.ask("POST", "/api/jobs", &vec![b' '; 100_000]).status, 413);
    assert_eq!(served.send(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03 TLS, say\r\n\r\n").status, 400);
}
