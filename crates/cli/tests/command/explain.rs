//! Fixes in code: shown in the language asked for, and such that each language's own compiler takes them. Where they are Linux's,
//! only Linux's headers have all their names.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::run::Desk;

/// Every snippet of the rules in `language`, each once.
fn snippets(desk: &Desk, language: &str) -> BTreeSet<String> {
    let list = desk.run(&["rules", "--format", "json"]).json();
    let rules = list["rules"].as_array().expect("rules");
    let recipes = rules.iter().flat_map(|rule| rule["recipes"].as_array().expect("recipes"));
    let code: BTreeSet<_> =
        recipes.filter_map(|recipe| Some(recipe["code"].get(language)?.as_str()?.to_owned())).collect();
    assert!(code.len() >= 3, "{language}: {code:?}");
    code
}

/// Runs a compiler in the desk's folder; what it complains of.
fn complaints(desk: &Desk, command: &str, args: &[&str]) -> String {
    let run = Command::new(command).args(args).current_dir(desk.path()).stdin(Stdio::null()).output();
    let run = run.unwrap_or_else(|error| panic!("{command}: {error}"));
    if run.status.success() {
        return String::new();
    }
    format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr))
}

fn is_there(command: &str, version: &str) -> bool {
    let run = Command::new(command).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let there = run.is_ok_and(|status| status.success());
    if !there {
        let _ = writeln!(std::io::stderr(), "SKIPPED: recipes are not given to {command}, which is not here");
    }
    there
}

/// Each snippet as the body of a function that begins with `head` and its number.
fn functions(desk: &Desk, language: &str, head: &str, parameters: &str) -> String {
    let mut text = String::new();
    for (number, code) in snippets(desk, language).iter().enumerate() {
        let _ = writeln!(text, "{head}{number}{parameters} {{\n{code}\n}}");
    }
    text
}

#[test]
#[cfg(target_os = "linux")]
fn a_c_and_a_cpp_compiler_take_the_recipes() {
    const HEAD: &str = "\
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
typedef struct CURL CURL;
extern int CURLOPT_URL;
extern \"C\" CURL *curl_easy_init(void);
extern \"C\" int curl_easy_setopt(CURL *, int, const char *);
extern \"C\" int curl_easy_perform(CURL *);
extern \"C\" void curl_easy_cleanup(CURL *);
";
    const PARAMETERS: &str =
        "(int fd, char *head, size_t head_size, char *body, size_t body_size, const char *url)";
    let desk = Desk::new();
    let text = functions(&desk, "C", "void recipe_", PARAMETERS);
    desk.file("recipes.cc", format!("{HEAD}{text}").as_bytes());
    desk.file("recipes.c", format!("{}{text}", HEAD.replace("\"C\" ", "")).as_bytes());
    let flags = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"];
    for (standard, file) in [("-std=gnu11", "recipes.c"), ("-std=gnu++17", "recipes.cc")] {
        if file.ends_with("cc") && !is_there("c++", "--version") {
            continue;
        }
        let compiler = if file.ends_with("cc") { "c++" } else { "cc" };
        let complaints = complaints(&desk, compiler, &[&flags[..], &[standard, file]].concat());
        assert_eq!(complaints, "", "{text}");
    }
}

/// Python compiles anything that looks right, so what a recipe asks of the module is asked for.
#[test]
#[cfg(target_os = "linux")]
fn python_takes_the_recipes() {
    const CHECK: &str = "\
import ast, socket, sys
for node in ast.walk(ast.parse(open(sys.argv[1]).read())):
    if isinstance(node, ast.Attribute) and getattr(node.value, 'id', '') == 'socket':
        getattr(socket, node.attr)
";
    if !is_there("python3", "--version") {
        return;
    }
    let desk = Desk::new();
    let text: Vec<_> = snippets(&desk, "Python").into_iter().collect();
    desk.file("recipes.py", text.join("\n").as_bytes());
    assert_eq!(complaints(&desk, "python3", &["-c", CHECK, "recipes.py"]), "", "{text:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn rust_takes_the_recipes() {
    const PARAMETERS: &str = "\
(mut stream: std::net::TcpStream, head: &[u8], body: &[u8]) -> std::io::Result<()>";
    let desk = Desk::new();
    let mut text = "#![allow(unused)]\nuse std::io::*;\n".to_owned();
    for (number, code) in snippets(&desk, "Rust").iter().enumerate() {
        // Other people's crates are not here: of these lines only the form is checked.
        let foreign = if code.contains("socket2::") || code.contains("reqwest::") {
            "#[cfg(any())]\nasync"
        } else {
            ""
        };
        let _ = writeln!(text, "{foreign} fn recipe_{number}{PARAMETERS} {{\n{code}\nOk(())\n}}");
    }
    desk.file("recipes.rs", text.as_bytes());
    let args = ["--edition=2024", "--crate-type=lib", "--emit=metadata", "recipes.rs"];
    assert_eq!(complaints(&desk, "rustc", &args), "", "{text}");
}

#[test]
fn java_go_and_node_take_the_recipes() {
    const JAVA: &str = "\
import java.io.*; import java.net.*; import java.net.http.*; import java.nio.*;
class Recipes {
    Socket socket; SocketAddress address; byte[] head, body;
";
    let desk = Desk::new();
    if is_there("javac", "-version") {
        let mut text = JAVA.to_owned();
        for (number, code) in snippets(&desk, "Java").iter().enumerate() {
            let _ = match code.starts_with("static ") {
                true => writeln!(text, "{code}"),
                false => writeln!(text, "void recipe{number}() throws Exception {{\n{code}\n}}"),
            };
        }
        desk.file("Recipes.java", format!("{text}}}\n").as_bytes());
        assert_eq!(complaints(&desk, "javac", &["Recipes.java"]), "", "{text}");
    }
    if is_there("gofmt", "--help") {
        let text = format!("package main\n{}", functions(&desk, "Go", "func recipe", "()"));
        desk.file("recipes.go", text.as_bytes());
        assert_eq!(complaints(&desk, "gofmt", &["-e", "recipes.go"]), "", "{text}");
    }
    if is_there("node", "--version") {
        let text = functions(&desk, "Node.js", "function recipe", "(socket, head, body)");
        desk.file("recipes.js", text.as_bytes());
        assert_eq!(complaints(&desk, "node", &["--check", "recipes.js"]), "", "{text}");
    }
}

#[test]
fn a_language_is_asked_for_by_any_of_its_names() {
    let desk = Desk::new();
    let explained = |language: &str| desk.run(&["explain", "nagle-delayed-ack", "--language", language]);
    assert!(desk.run(&["explain", "nagle-delayed-ack"]).stdout.contains("writev(fd, parts, 2);"));
    for (names, line) in [
        (["python", "Python", "py"], "sock.sendall(head + body)"),
        (["javascript", "Node.js", "js"], "socket.setNoDelay(true);"),
        (["csharp", "C#", "cs"], "socket.NoDelay = true;"),
    ] {
        for name in names {
            let ran = explained(name);
            assert!(ran.stdout.contains(line) && !ran.stdout.contains("writev(fd"), "{name}: {ran:?}");
        }
    }
    let all = explained("all").stdout;
    assert!(all.contains("writev(fd, parts, 2);") && all.contains("socket.NoDelay = true;"), "{all}");
    let ran = explained("pascal");
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("python") && ran.stderr.contains("csharp"), "{ran:?}");
    assert!(
        desk.run(&["completions", "bash"]).stdout.contains("c python java go javascript rust csharp all")
    );
}
