//! Redis' protocol RESP 2 and 3: requests are arrays of strings, the first of them a command.

use super::{Kind, Message, Name, Protocol, Segment};

/// Bytes that the number after `*` or `$` and its line's end can have.
const LONGEST_NUMBER: usize = 12;

/// The longest command, `UNSUBSCRIBE` or a module's; longer first strings are no commands.
const LONGEST_COMMAND: usize = 24;

/// Elements of an array that are walked along for its length.
const ELEMENTS: i64 = 64;

/// A request, or a reply of any type.
pub(super) fn read(segment: Segment<'_>) -> Option<Message> {
    let (&kind, after) = segment.bytes.split_first()?;
    match kind {
        b'*' => array(segment),
        // A status is a word or two: its end was stored.
        b'+' if after.contains(&b'\r') => simple(after, segment).map(|()| message(Kind::Answers, "status")),
        // An error's kind comes first.
        b'-' if after.first_chunk::<2>()?.iter().all(u8::is_ascii_uppercase) => {
            simple(after, segment).map(|()| message(Kind::Answers, "error"))
        }
        b'$' => string(segment),
        b':' => {
            let (_, used) = number(after)?;
            (segment.len as usize == 1 + used || starts_value(after, used))
                .then(|| message(Kind::Answers, "number"))
        }
        b'%' | b'~' | b'>' => aggregate(kind, segment),
        _ => None,
    }
}

fn message(kind: Kind, name: &str) -> Message {
    Message::new(Protocol::Redis, kind, Name::new(name))
}

/// The number at the beginning of `bytes`, which its line's end follows, and the bytes of both.
fn number(bytes: &[u8]) -> Option<(i64, usize)> {
    let end = bytes.iter().take(LONGEST_NUMBER).position(|&byte| byte == b'\r')?;
    if *bytes.get(end + 1)? != b'\n' {
        return None;
    }
    let digits = std::str::from_utf8(&bytes[..end]).ok()?;
    // `parse` takes a plus sign, which RESP does not have here.
    let number = digits.parse().ok().filter(|_| !digits.starts_with('+'))?;
    Some((number, end + 2))
}

/// Whether a value begins at `at`, or nothing was stored of it.
fn starts_value(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| b"*+-$:%~>_#,(=".contains(byte))
}

/// A line of text alone: as much of it as was stored.
fn simple(text: &[u8], segment: Segment<'_>) -> Option<()> {
    let end = text.iter().position(|byte| !matches!(byte, b' '..=b'~'));
    match end {
        None => (!segment.is_whole() && text.len() >= 4).then_some(()),
        Some(0) => None,
        Some(end) => match text[end..] {
            [b'\r', b'\n', ..] => starts_value(text, end + 2).then_some(()),
            [b'\r'] if !segment.is_whole() => Some(()),
            _ => None,
        },
    }
}

/// A string of known length, or none.
fn string(segment: Segment<'_>) -> Option<Message> {
    let (len, used) = number(&segment.bytes[1..])?;
    let text = 1 + used;
    if len == -1 {
        let is_all = segment.len as usize == text || starts_value(segment.bytes, text);
        return is_all.then(|| message(Kind::Answers, "nothing"));
    }
    let end = text + usize::try_from(len).ok()? + 2;
    let is_ended = segment.bytes.get(end - 2..end).is_none_or(|line_end| line_end == b"\r\n");
    // The last segment of a value may hold nothing else than such a header; the rest follows.
    (is_ended && starts_value(segment.bytes, end))
        .then(|| message(Kind::Answers, "value").with_len_of(segment, u32::try_from(end).ok()))
}

/// A request if its first string is a command, else a reply.
fn array(segment: Segment<'_>) -> Option<Message> {
    let (count, used) = number(&segment.bytes[1..])?;
    let first = 1 + used;
    if count < -1 || !starts_value(segment.bytes, first) {
        return None;
    }
    let Some(word) = first_word(segment.bytes, first).filter(|_| count > 0) else {
        return Some(message(Kind::Answers, "array"));
    };
    let (end, last) = walk(segment, first, count);
    let end = end.and_then(|end| u32::try_from(end).ok());
    let kind_of_word = kind_of(word, last);
    if kind_of_word == Kind::Answers {
        return Some(message(Kind::Answers, "array").with_len_of(segment, end));
    }
    let mut upper = [0; LONGEST_COMMAND];
    let upper = &mut upper[..word.len()];
    upper.copy_from_slice(word);
    upper.make_ascii_uppercase();
    let mut name = Name::default();
    name.push(upper);
    Some(Message::new(Protocol::Redis, kind_of_word, name).with_len_of(segment, end))
}

/// A map or a set, or what was pushed without a request.
fn aggregate(kind: u8, segment: Segment<'_>) -> Option<Message> {
    let (count, used) = number(&segment.bytes[1..])?;
    if count < 0 || segment.bytes.len() <= 1 + used || !starts_value(segment.bytes, 1 + used) {
        return None;
    }
    let is_subscription =
        || first_word(segment.bytes, 1 + used).is_some_and(|word| word.ends_with(b"subscribe"));
    Some(match kind {
        b'>' if !is_subscription() => message(Kind::Neither, "push"),
        _ => message(Kind::Answers, "array"),
    })
}

/// The string that begins at `at`, if it can be a command.
fn first_word(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let after = bytes.get(at..)?.strip_prefix(b"$")?;
    let (len, used) = number(after)?;
    let len = usize::try_from(len).ok().filter(|len| (2..=LONGEST_COMMAND).contains(len))?;
    let word = after.get(used..used + len)?;
    let is_word = word.iter().all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
    (is_word && after.get(used + len).is_none_or(|&byte| byte == b'\r')).then_some(word)
}

/// Where an array of strings ends that has `count` elements from `at` on, and the type of its last element that was
/// stored.
fn walk(segment: Segment<'_>, mut at: usize, count: i64) -> (Option<usize>, u8) {
    let mut last = b'$';
    if count > ELEMENTS {
        return (None, last);
    }
    for _ in 0..count {
        let Some((&kind, after)) = segment.bytes.get(at..).and_then(<[u8]>::split_first) else {
            return (None, last);
        };
        last = kind;
        match number(after) {
            Some((len @ 0.., used)) if kind == b'$' => {
                let Some(end) = usize::try_from(len).ok().and_then(|len| at.checked_add(1 + used + len + 2))
                else {
                    return (None, last);
                };
                at = end;
            }
            _ => return (None, last),
        }
    }
    (Some(at), last)
}

/// What an array is whose first string is `word` and whose last element has the type `last`.
fn kind_of(word: &[u8], last: u8) -> Kind {
    let is_pushed = matches!(word, b"message" | b"pmessage" | b"smessage");
    match last {
        _ if is_pushed => Kind::Neither,
        b'$' if is_command(word) => Kind::Asks,
        _ => Kind::Answers,
    }
}

/// Whether Redis has such a command, or a module may have it.
fn is_command(word: &[u8]) -> bool {
    let module = word.iter().position(|&byte| byte == b'.');
    let (known, word) = module.map_or((&COMMANDS[..], word), |dot| (&MODULES[..], &word[..dot]));
    known.iter().any(|command| command.as_bytes().eq_ignore_ascii_case(word))
}

/// Modules whose commands have a dot in them.
#[rustfmt::skip]
const MODULES: [&str; 11] = [
    "BF", "CF", "CMS", "FT", "GRAPH", "JSON", "RG", "TDIGEST", "TIMESERIES", "TOPK", "TS",
];

/// Commands of Redis up to 8, and of Sentinel.
#[rustfmt::skip]
const COMMANDS: [&str; 249] = [
    "GET", "SET", "DEL", "PING", "AUTH", "INFO", "SELECT", "MGET", "MSET", "HGET", "HSET", "HGETALL", "HMGET",
    "HMSET", "INCR", "DECR", "EXISTS", "EXPIRE", "TTL", "KEYS", "SCAN", "LPUSH", "RPUSH", "LPOP", "RPOP",
    "LLEN", "LRANGE", "LINDEX", "LREM", "LSET", "LTRIM", "LINSERT", "LMOVE", "LMPOP", "LPOS", "LPUSHX",
    "RPUSHX", "RPOPLPUSH", "BLPOP", "BRPOP", "BRPOPLPUSH", "BLMOVE", "BLMPOP", "SADD", "SREM", "SCARD",
    "SMEMBERS", "SISMEMBER", "SMISMEMBER", "SPOP", "SRANDMEMBER", "SMOVE", "SINTER", "SINTERSTORE",
    "SINTERCARD", "SUNION", "SUNIONSTORE", "SDIFF", "SDIFFSTORE", "SSCAN", "ZADD", "ZREM", "ZCARD", "ZCOUNT",
    "ZINCRBY", "ZRANGE", "ZRANGEBYSCORE", "ZRANGEBYLEX", "ZRANGESTORE", "ZREVRANGE", "ZREVRANGEBYSCORE",
    "ZREVRANGEBYLEX", "ZRANK", "ZREVRANK", "ZSCORE", "ZMSCORE", "ZPOPMIN", "ZPOPMAX", "BZPOPMIN", "BZPOPMAX",
    "BZMPOP", "ZMPOP", "ZLEXCOUNT", "ZREMRANGEBYSCORE", "ZREMRANGEBYRANK", "ZREMRANGEBYLEX", "ZSCAN", "ZUNION",
    "ZUNIONSTORE", "ZINTER", "ZINTERSTORE", "ZINTERCARD", "ZDIFF", "ZDIFFSTORE", "ZRANDMEMBER", "HDEL",
    "HEXISTS", "HINCRBY", "HINCRBYFLOAT", "HKEYS", "HVALS", "HLEN", "HSETNX", "HSCAN", "HSTRLEN", "HRANDFIELD",
    "HEXPIRE", "HPEXPIRE", "HTTL", "HPTTL", "HPERSIST", "HGETDEL", "HGETEX", "HSETEX", "APPEND", "STRLEN",
    "GETRANGE", "SETRANGE", "GETSET", "GETDEL", "GETEX", "SETEX", "PSETEX", "SETNX", "MSETNX", "INCRBY",
    "INCRBYFLOAT", "DECRBY", "SETBIT", "GETBIT", "BITCOUNT", "BITOP", "BITPOS", "BITFIELD", "BITFIELD_RO",
    "PFADD", "PFCOUNT", "PFMERGE", "PEXPIRE", "PEXPIREAT", "EXPIREAT", "EXPIRETIME", "PEXPIRETIME", "PTTL",
    "PERSIST", "RENAME", "RENAMENX", "TYPE", "UNLINK", "TOUCH", "DUMP", "RESTORE", "MIGRATE", "MOVE", "COPY",
    "OBJECT", "SORT", "SORT_RO", "RANDOMKEY", "WAIT", "WAITAOF", "GEOADD", "GEODIST", "GEOHASH", "GEOPOS",
    "GEORADIUS", "GEORADIUS_RO", "GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO", "GEOSEARCH", "GEOSEARCHSTORE",
    "XADD", "XACK", "XAUTOCLAIM", "XCLAIM", "XDEL", "XGROUP", "XINFO", "XLEN", "XPENDING", "XRANGE", "XREAD",
    "XREADGROUP", "XREVRANGE", "XSETID", "XTRIM", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE",
    "PUNSUBSCRIBE", "SUNSUBSCRIBE", "PUBLISH", "SPUBLISH", "PUBSUB", "MULTI", "EXEC", "DISCARD", "WATCH",
    "UNWATCH", "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO", "FUNCTION", "SCRIPT", "CLIENT",
    "COMMAND", "CONFIG", "DBSIZE", "DEBUG", "ECHO", "FLUSHALL", "FLUSHDB", "HELLO", "LASTSAVE", "LATENCY",
    "LOLWUT", "MEMORY", "MODULE", "MONITOR", "PSYNC", "SYNC", "QUIT", "READONLY", "READWRITE", "RESET",
    "REPLCONF", "REPLICAOF", "SLAVEOF", "ROLE", "SAVE", "BGSAVE", "BGREWRITEAOF", "SHUTDOWN", "SLOWLOG",
    "SWAPDB", "TIME", "ACL", "ASKING", "CLUSTER", "FAILOVER", "SENTINEL", "SUBSTR", "LCS", "VADD", "VSIM",
];
