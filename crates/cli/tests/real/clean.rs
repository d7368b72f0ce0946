//! Programs that do everything right: nothing is to be found in them.

use std::path::Path;
use std::process::Command;

use crate::attempts::one_succeeds;
use crate::program::{Program, free_port};
use crate::run::Desk;
use crate::watched::Capture;
use crate::{has_rights, holds, skipped};

/// Requests of each client.
const REQUESTS: u64 = 200;
/// Bytes of an answer that takes several calls and segments.
const LARGE: usize = 300_000;

fn redis(desk: &Desk) -> Option<Program> {
    let port = free_port();
    let port_text = port.to_string();
    let mut redis = Command::new("redis-server");
    redis.args(["--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
    Program::on_port(port, redis.arg(desk.path()))
}

#[test]
fn redis_with_a_pipelining_client() {
    const NAME: &str = "redis_with_a_pipelining_client";
    if !has_rights(NAME) {
        return;
    }
    let desk = Desk::new();
    let Some(redis) = redis(&desk) else { return skipped(NAME, "there is no redis-server") };
    let port = redis.port.to_string();
    let requests = (32 * REQUESTS).to_string();
    let ask = ["-p", &port, "-P", "16", "-n", &requests, "-c", "4", "-d", "100", "-t", "set,get", "-q"];
    one_succeeds(|| {
        let capture = Capture::of(&redis);
        let Ok(asked) = Command::new("redis-benchmark").args(ask).output() else {
            skipped(NAME, "there is no redis-benchmark");
            return Ok(());
        };
        let report = capture.analysed();
        holds!(asked.status.success(), "{asked:?}");
        // Each answer to a GET carries 100 bytes.
        let answered = report.bytes_to_clients();
        holds!(answered > 32 * REQUESTS * 100, "{answered} bytes of answers");
        holds!(report.problems().is_empty(), "{:#?}", report.problems());
        Ok(())
    });
}

fn nginx(desk: &Desk) -> Option<Program> {
    let port = free_port();
    let folder = desk.path().display();
    let configuration = format!(
        "daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors;
         events {{ }}
         http {{
             access_log off; keepalive_requests 1000000;
             client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
             uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
             server {{ listen 127.0.0.1:{port}; root {folder}; }}
         }}"
    );
    let file = desk.file("nginx.conf", configuration.as_bytes());
    let errors = desk.path().join("errors");
    let elsewhere = Path::new("/usr/sbin/nginx");
    let program = if elsewhere.exists() { elsewhere } else { Path::new("nginx") };
    Program::on_port(port, Command::new(program).arg("-e").arg(errors).arg("-c").arg(file))
}

#[test]
fn nginx_with_keep_alive() {
    const NAME: &str = "nginx_with_keep_alive";
    if !has_rights(NAME) {
        return;
    }
    let desk = Desk::new();
    // One that goes out by one call, and one that takes several.
    desk.file("small.txt", b"hello\n");
    desk.file("large.bin", &[7; LARGE]);
    let Some(nginx) = nginx(&desk) else { return skipped(NAME, "there is no nginx") };
    let url = |page: &str| format!("http://{}/{page}?[1-{REQUESTS}]", nginx.address());
    let fetch = |page| Command::new("curl").args(["-s", "-q", "-f", "-o", "/dev/null", &url(page)]).output();
    if fetch("small.txt").is_err() {
        return skipped(NAME, "there is no curl");
    }
    one_succeeds(|| {
        let capture = Capture::of(&nginx);
        for page in ["small.txt", "large.bin"] {
            let fetched = fetch(page).expect("curl is there");
            holds!(fetched.status.success(), "{fetched:?}");
        }
        let report = capture.analysed();
        holds!(report.exchanges() >= REQUESTS, "{} exchanges", report.exchanges());
        holds!(report.bytes_to_clients() > REQUESTS * LARGE as u64, "{} bytes", report.bytes_to_clients());
        holds!(report.problems().is_empty(), "{:#?}", report.problems());
        Ok(())
    });
}
