//! What a statement in SQL is called: its first word, and nothing of what it says.

use super::Name;

/// First words of statements, of PostgreSQL, MySQL and the standard.
#[rustfmt::skip]
static WORDS: [Name; 52] = names([
    "SELECT", "INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT", "ROLLBACK", "SET", "SHOW", "WITH", "CREATE",
    "ALTER", "DROP", "TRUNCATE", "START", "END", "ABORT", "SAVEPOINT", "RELEASE", "EXPLAIN", "ANALYZE",
    "VACUUM", "COPY", "DECLARE", "FETCH", "CLOSE", "MOVE", "PREPARE", "EXECUTE", "DEALLOCATE", "DISCARD",
    "LOCK", "UNLOCK", "LISTEN", "UNLISTEN", "NOTIFY", "GRANT", "REVOKE", "CALL", "DO", "MERGE", "VALUES",
    "TABLE", "REPLACE", "USE", "DESCRIBE", "DESC", "LOAD", "KILL", "FLUSH", "RESET", "OPTIMIZE",
]);

const fn names<const N: usize>(words: [&str; N]) -> [Name; N] {
    let mut names = [Name::fixed(""); N];
    let mut at = 0;
    while at < N {
        names[at] = Name::fixed(words[at]);
        at += 1;
    }
    names
}

/// Bytes of the longest of them, and one that ends it.
const LONGEST: usize = 11;

/// The first word of `statement`, after space, comments and brackets.
pub(super) fn first_word(mut statement: &[u8]) -> Option<&'static Name> {
    while let Some(after) = without_comment(statement) {
        statement = after;
    }
    let len = statement.iter().take(LONGEST).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let word = &statement[..len];
    WORDS.iter().find(|known| known.as_str().as_bytes().eq_ignore_ascii_case(word))
}

/// What follows one character of space, one bracket, or one comment.
fn without_comment(statement: &[u8]) -> Option<&[u8]> {
    match statement {
        [b' ' | b'\t' | b'\r' | b'\n' | b'(', after @ ..] => Some(after),
        [b'/', b'*', after @ ..] => after.windows(2).position(|end| end == b"*/").map(|at| &after[at + 2..]),
        [b'-', b'-', after @ ..] => after.iter().position(|&byte| byte == b'\n').map(|at| &after[at + 1..]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    fn first_word(statement: &[u8]) -> Option<&'static str> {
        super::first_word(statement).map(super::Name::as_str)
    }

    #[test]
    fn words_are_found_and_nothing_else() {
        assert_eq!(first_word(b"SELECT 1"), Some("SELECT"));
        assert_eq!(first_word(b"  /* who */ -- why\n (select x)"), Some("SELECT"));
        assert_eq!(first_word(b"commit"), Some("COMMIT"));
        assert_eq!(first_word(b"SELECTED"), None);
        assert_eq!(first_word(b"hunter2"), None);
        assert_eq!(first_word(b"/* no end SELECT"), None);
        assert_eq!(first_word(b""), None);
    }
}
