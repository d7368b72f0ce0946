//! The asserts on `tcp_info` in a script's Python: `assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd`.
//!
//! Only expressions of numbers are read. Everything else is handed back as not checked, so that nobody takes
//! silence for a pass.

use std::collections::HashMap;

/// Deepest nesting of parentheses and signs.
const DEEPEST: usize = 32;

/// What came of one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The assert does not hold; its text and the values of the names in it.
    Broken(String, String),
    /// Not understood, or about something that is not known here.
    Unchecked(String),
}

/// Runs the statements of one piece of code; `info` knows the fields of `tcp_info`. `names` are the code's own.
pub(super) fn check(
    code: &str,
    names: &mut HashMap<String, f64>,
    info: &mut dyn FnMut(&str) -> Option<f64>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for statement in statements(code) {
        let mut scope = Scope { names, info, seen: Vec::new() };
        findings.extend(scope.statement(&statement));
    }
    findings
}

/// The statements: lines, or what stands between semicolons; a line with an open parenthesis goes on, and one that
/// ends with a backslash.
fn statements(code: &str) -> Vec<String> {
    let mut list = vec![String::new()];
    let mut open = 0_usize;
    let mut string = None;
    let mut comment = false;
    for c in code.replace("\\\n", " ").chars() {
        let plain = string.is_none() && !comment;
        match c {
            '#' if plain => comment = true,
            '"' | '\'' if !comment => string = if string == Some(c) { None } else { string.or(Some(c)) },
            '(' if plain => open += 1,
            ')' if plain => open = open.saturating_sub(1),
            _ => {}
        }
        let ends = (c == ';' && plain) || (c == '\n' && open == 0);
        comment &= c != '\n';
        if ends {
            string = None;
            list.push(String::new());
        } else if let Some(last) = list.last_mut().filter(|_| !comment) {
            last.push(if c == '\n' { ' ' } else { c });
        }
    }
    list.into_iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

struct Scope<'a> {
    names: &'a mut HashMap<String, f64>,
    info: &'a mut dyn FnMut(&str) -> Option<f64>,
    /// The names that were read, with their values.
    seen: Vec<(String, f64)>,
}

impl Scope<'_> {
    fn statement(&mut self, text: &str) -> Option<Finding> {
        let unchecked = || Some(Finding::Unchecked(text.to_owned()));
        if text.starts_with("print") || text == "pass" {
            return None;
        }
        if let Some(condition) = text.strip_prefix("assert").filter(|rest| !starts_in_word(rest)) {
            return match self.value_before(condition, ',') {
                Some(0.0) => Some(Finding::Broken(text.to_owned(), self.values())),
                Some(_) => None,
                None => unchecked(),
            };
        }
        match text.split_once('=') {
            Some((name, value)) if is_name(name.trim()) => match self.value_before(value, '\0') {
                Some(value) => {
                    self.names.insert(name.trim().to_owned(), value);
                    None
                }
                None => unchecked(),
            },
            _ => unchecked(),
        }
    }

    /// The value of the expression that ends at the text's end or at `stop`.
    fn value_before(&mut self, text: &str, stop: char) -> Option<f64> {
        let mut reader = Reader { tokens: tokens(text)?, at: 0, depth: 0, scope: self };
        let value = reader.either()?;
        let rest = reader.peek();
        (rest.is_none() || rest == Some(&Token::Sign(stop))).then_some(value)
    }

    fn lookup(&mut self, name: &str) -> Option<f64> {
        let value = constant(name).or_else(|| self.names.get(name).copied()).or_else(|| (self.info)(name))?;
        self.seen.push((name.to_owned(), value));
        Some(value)
    }

    fn values(&self) -> String {
        let pairs: Vec<String> = self.seen.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        pairs.join(", ")
    }
}

/// Linux's names for congestion states (`enum tcp_ca_state`) and the like.
fn constant(name: &str) -> Option<f64> {
    Some(match name {
        "True" => 1.0,
        "False" | "TCP_CA_Open" => 0.0,
        "TCP_CA_Disorder" => 1.0,
        "TCP_CA_CWR" => 2.0,
        "TCP_CA_Recovery" => 3.0,
        "TCP_CA_Loss" => 4.0,
        "TCP_INFINITE_SSTHRESH" => f64::from(0x7fff_ffff),
        "TCPI_OPT_TIMESTAMPS" => 1.0,
        "TCPI_OPT_SACK" => 2.0,
        "TCPI_OPT_WSCALE" => 4.0,
        "TCPI_OPT_ECN" => 8.0,
        "TCPI_OPT_ECN_SEEN" => 16.0,
        _ => return None,
    })
}

fn starts_in_word(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    /// `==` and its like.
    Compare(&'static str),
    Sign(char),
}

const COMPARISONS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

/// The tokens up to the first that no expression of numbers has, which becomes a NUL.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut list = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() || first == '.' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
            list.push(Token::Number(literal(&rest[..end])?));
            end
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            list.push(Token::Name(rest[..end].to_owned()));
            end
        } else if let Some(sign) = COMPARISONS.iter().find(|sign| rest.starts_with(**sign)) {
            list.push(Token::Compare(sign));
            sign.len()
        } else if let Some(after) = rest.strip_prefix("//") {
            list.push(Token::Sign('÷'));
            rest.len() - after.len()
        } else if "+-*/%(),&|".contains(first) {
            list.push(Token::Sign(first));
            1
        } else {
            // A string after the comma, say: the condition before it can still be read.
            list.push(Token::Sign('\0'));
            return Some(list);
        };
        rest = rest[length..].trim_start();
    }
    Some(list)
}

fn literal(text: &str) -> Option<f64> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok().map(f64::from),
        None => text.parse().ok(),
    }
}

struct Reader<'a, 'b> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    scope: &'a mut Scope<'b>,
}

impl Reader<'_, '_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, token: &Token) -> bool {
        let here = self.peek() == Some(token);
        self.at += usize::from(here);
        here
    }

    fn take_name(&mut self, name: &str) -> bool {
        self.take(&Token::Name(name.to_owned()))
    }

    fn either(&mut self) -> Option<f64> {
        let mut value = self.both()?;
        while self.take_name("or") {
            let other = self.both()?;
            value = if value == 0.0 { other } else { value };
        }
        Some(value)
    }

    fn both(&mut self) -> Option<f64> {
        let mut value = self.negation()?;
        while self.take_name("and") {
            let other = self.negation()?;
            value = if value == 0.0 { value } else { other };
        }
        Some(value)
    }

    fn negation(&mut self) -> Option<f64> {
        let mut negated = false;
        let mut any = false;
        while self.take_name("not") {
            negated = !negated;
            any = true;
        }
        let value = self.comparison()?;
        let is_true = value != 0.0;
        Some(if any { f64::from(is_true != negated) } else { value })
    }

    /// Python chains them: `1 < a < 3`.
    fn comparison(&mut self) -> Option<f64> {
        let mut left = self.bits()?;
        let mut chain = None;
        while let Some(Token::Compare(sign)) = self.peek().cloned() {
            self.at += 1;
            let right = self.bits()?;
            let holds = match sign {
                "==" => left == right,
                "!=" => left != right,
                "<=" => left <= right,
                ">=" => left >= right,
                "<" => left < right,
                _ => left > right,
            };
            chain = Some(chain.unwrap_or(true) && holds);
            left = right;
        }
        Some(chain.map_or(left, f64::from))
    }

    fn bits(&mut self) -> Option<f64> {
        let mut value = self.sum()?;
        loop {
            if self.take(&Token::Sign('&')) {
                value = (whole(value)? & whole(self.sum()?)?) as f64;
            } else if self.take(&Token::Sign('|')) {
                value = (whole(value)? | whole(self.sum()?)?) as f64;
            } else {
                return Some(value);
            }
        }
    }

    fn sum(&mut self) -> Option<f64> {
        let mut value = self.product()?;
        loop {
            if self.take(&Token::Sign('+')) {
                value += self.product()?;
            } else if self.take(&Token::Sign('-')) {
                value -= self.product()?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut value = self.single()?;
        loop {
            let Some(Token::Sign(sign @ ('*' | '/' | '÷' | '%'))) = self.peek().cloned() else {
                return Some(value);
            };
            self.at += 1;
            let other = self.single()?;
            if sign != '*' && other == 0.0 {
                return None;
            }
            value = match sign {
                '*' => value * other,
                '/' => value / other,
                '÷' => (value / other).floor(),
                _ => value - other * (value / other).floor(),
            };
        }
    }

    fn single(&mut self) -> Option<f64> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let token = self.peek().cloned()?;
        self.at += 1;
        let value = match token {
            Token::Number(number) => number,
            Token::Sign('-') => -self.single()?,
            Token::Sign('(') => self.closed()?,
            Token::Name(name) if self.take(&Token::Sign('(')) => self.function(&name)?,
            Token::Name(name) => self.scope.lookup(&name)?,
            _ => return None,
        };
        self.depth -= 1;
        Some(value)
    }

    fn closed(&mut self) -> Option<f64> {
        let value = self.either()?;
        self.take(&Token::Sign(')')).then_some(value)
    }

    fn function(&mut self, name: &str) -> Option<f64> {
        match name {
            "abs" => self.closed().map(f64::abs),
            "int" => self.closed().map(f64::trunc),
            "float" => self.closed(),
            _ => None,
        }
    }
}

/// A whole number that a double holds exactly.
fn whole(value: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(code: &str) -> Vec<Finding> {
        let mut info = |name: &str| match name {
            "tcpi_snd_cwnd" => Some(10.0),
            "tcpi_ca_state" => Some(3.0),
            _ => None,
        };
        check(code, &mut HashMap::new(), &mut info)
    }

    #[test]
    fn asserts_that_hold_say_nothing() {
        for code in [
            "assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd",
            "assert tcpi_snd_cwnd == 10, 'cwnd: %d' % tcpi_snd_cwnd",
            "assert (tcpi_snd_cwnd > 9 and tcpi_snd_cwnd <= 10), tcpi_snd_cwnd",
            "assert tcpi_ca_state == TCP_CA_Recovery, tcpi_ca_state; assert 9 < tcpi_snd_cwnd < 11",
            "cwnd = tcpi_snd_cwnd * 2\nassert cwnd // 3 == 6 and not cwnd == 19",
            "assert abs(-3) == 3 or False",
            "assert (tcpi_snd_cwnd ==\n   10)",
            "assert tcpi_snd_cwnd == 10; \\\n assert tcpi_snd_cwnd \\\n == 10",
            "print(tcpi_snd_cwnd)",
            "# a \"note (\nassert tcpi_snd_cwnd == 10 # yes\n# end",
            "assert tcpi_ca_state & 1",
        ] {
            assert_eq!(run(code), [], "{code}");
        }
    }

    #[test]
    fn a_broken_assert_tells_the_values() {
        let broken = |text: &str, values: &str| vec![Finding::Broken(text.into(), values.into())];
        let text = "assert tcpi_snd_cwnd == 11, tcpi_snd_cwnd";
        assert_eq!(run(text), broken(text, "tcpi_snd_cwnd = 10"));
        assert_eq!(run("assert 1 < 1"), broken("assert 1 < 1", ""));
        assert_eq!(run("assert not 1"), broken("assert not 1", ""));
    }

    #[test]
    fn what_is_not_understood_is_not_a_pass() {
        for code in [
            "assert tcpi_no_such == 1",
            "assert 'a' == 'a'",
            "import os",
            "assert len(x) == 1",
            "if tcpi_snd_cwnd:",
            "assert 1 / 0",
            "assert",
            "assert 1 ==",
            "assert (1",
            &format!("assert {}1", "(".repeat(100_000)),
            &format!("assert {}1", "-".repeat(100_000)),
        ] {
            assert!(matches!(run(code)[..], [Finding::Unchecked(_)]), "{code:.40}");
        }
    }
}
