//! HTTP/1.0 and 1.1: request lines and status lines.

use super::{Kind, Protocol, len_of, read, recognise, says_in};

fn http(payload: &str) -> (Kind, String) {
    says_in(Protocol::Http1, payload.as_bytes())
}

#[test]
fn requests_are_named_by_method_and_path() {
    for (line, name) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /"),
        ("GET /hello.txt HTTP/1.0\r\n\r\n", "GET /hello.txt"),
        ("POST /api/v1/items HTTP/1.1\r\n", "POST /api/v1/items"),
        ("OPTIONS * HTTP/1.1\r\n\r\n", "OPTIONS *"),
        ("PROPFIND /dav/ HTTP/1.1\n\n", "PROPFIND /dav/"),
        ("GET /a/very/long/path/that/no/line/has/room/for HTTP/1.1\r\n\r\n", "GET /a/very/long/path/that/n…"),
        // The line's end is in the next segment.
        ("GET /cut", "GET /cut"),
    ] {
        assert_eq!(http(line), (Kind::Asks, name.to_owned()));
    }
}

#[test]
fn secrets_stay_out_of_names() {
    for (line, name) in [
        ("GET /login?password=hunter2 HTTP/1.1\r\n\r\n", "GET /login"),
        ("GET /page#token=abc HTTP/1.1\r\n\r\n", "GET /page"),
        ("GET /shop;jsessionid=0123 HTTP/1.1\r\n\r\n", "GET /shop"),
        ("GET http://user:secret@example.com/x?y HTTP/1.1\r\n\r\n", "GET /x"),
        ("GET https://example.com HTTP/1.1\r\n\r\n", "GET /"),
        ("GET http://example.com?next=/secret HTTP/1.1\r\n\r\n", "GET /"),
        ("CONNECT user:secret@example.com:443 HTTP/1.1\r\n\r\n", "CONNECT"),
    ] {
        assert_eq!(http(line), (Kind::Asks, name.to_owned()));
    }
}

#[test]
fn names_are_plain_text() {
    let (_, name) = says_in(Protocol::Http1, b"GET /a\xe2\x80\xaeb\xff\xc3\xa9c HTTP/1.1\r\n\r\n");
    assert_eq!(name, "GET /abc");
}

#[test]
fn answers_are_named_by_code() {
    for (line, kind, name) in [
        ("HTTP/1.1 200 OK\r\nServer: x\r\n\r\n", Kind::Answers, "HTTP 200"),
        ("HTTP/1.0 404 Not Found\r\n", Kind::Answers, "HTTP 404"),
        ("HTTP/1.1 204\r\n\r\n", Kind::Answers, "HTTP 204"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", Kind::Answers, "HTTP 101"),
        ("HTTP/1.1 100 Continue\r\n\r\n", Kind::Greets, "HTTP 100"),
        ("HTTP/1.1 103 Early Hints\r\n\r\n", Kind::Neither, "HTTP 103"),
    ] {
        assert_eq!(http(line), (kind, name.to_owned()));
    }
}

#[test]
fn the_header_tells_how_far_a_message_goes() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nhello";
    let header = answer.len() as u32 - 5;
    assert_eq!(len_of(answer, answer.len(), answer.len() as u32), Some(header + 5_000));
    // Its end was not stored.
    assert_eq!(len_of(answer, 40, answer.len() as u32), None);
    let post = b"POST /x HTTP/1.1\r\ncontent-length:7\r\n\r\n";
    assert_eq!(len_of(post, post.len(), post.len() as u32), Some(post.len() as u32 + 7));
    let get = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(len_of(get, get.len(), get.len() as u32), Some(get.len() as u32));
    let unchanged = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n";
    assert_eq!(len_of(unchanged, unchanged.len(), unchanged.len() as u32), Some(unchanged.len() as u32));
}

#[test]
fn lengths_that_nobody_knows_are_not_told() {
    for answer in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4294967295\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        // Another answer follows.
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        assert_eq!(len_of(answer.as_bytes(), answer.len(), answer.len() as u32), None, "{answer}");
    }
}

#[test]
fn near_misses_are_unknown() {
    for line in [
        "GET",
        "GET ",
        "GET  /",
        "GETS / HTTP/1.1\r\n",
        "get / HTTP/1.1\r\n",
        "GET hello\r\n",
        "GET / \r\n",
        "GET /hello.txt\r\n",
        "GET / HTTP/2.0\r\n",
        "GET / HTTP/1.11\r\n",
        "OPTIONS rtsp://a/b RTSP/1.0\r\n",
        "OPTIONS sip:a@b SIP/2.0\r\n",
        "HTTP/1.1 2000\r\n",
        "HTTP/1.1 600 X\r\n",
        "HTTP/1.1 20",
        "HTTP/2 200",
        "HTTP/1.1",
    ] {
        assert_eq!(read(line.as_bytes()), None, "{line}");
    }
}

#[test]
fn too_many_fields_leave_the_length_unknown() {
    let many = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 1\r\n\r\n", "a: b\r\n".repeat(500));
    let message = recognise(many.as_bytes(), many.len() as u32).expect("known");
    assert_eq!((message.kind, message.expected_len()), (Kind::Answers, None));
}
