//! Entities of XML in text: the five that have names, and numbers.

use std::borrow::Cow;

/// The longest entity that is read, without `&` and `;`: `#x10FFFF` with two zeros before it.
const MAX_ENTITY: usize = 10;

/// The text with its entities read; what is none of them stays.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    let Some((before, mut rest)) = text.split_once('&') else { return text.into() };
    let mut out = String::with_capacity(text.len());
    out.push_str(before);
    loop {
        let entity = rest.bytes().take(MAX_ENTITY + 1).position(|byte| byte == b';');
        let entity = entity.and_then(|end| Some((char_of(rest.get(..end)?)?, rest.get(end + 1..)?)));
        match entity {
            Some((char, behind)) => {
                out.push(char);
                rest = behind;
            }
            None => out.push('&'),
        }
        let Some((plain, behind)) = rest.split_once('&') else { break };
        out.push_str(plain);
        rest = behind;
    }
    out.push_str(rest);
    out.into()
}

fn char_of(entity: &str) -> Option<char> {
    Some(match entity {
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "amp" => '&',
        _ => {
            let number = entity.strip_prefix('#')?;
            let hexadecimal = number.strip_prefix(['x', 'X']);
            let (digits, radix) = hexadecimal.map_or((number, 10), |digits| (digits, 16));
            // A sign is no digit, but the parser takes one.
            let good = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            char::from_u32(u32::from_str_radix(digits, radix).ok().filter(|_| good)?)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn reads_each_entity_once() {
        for (text, read) in [
            ("no entity", "no entity"),
            ("a &lt; b &amp;&amp; c &gt; d", "a < b && c > d"),
            ("&quot;&apos;&#39;&#x1F642;&#233;", "\"''🙂é"),
            ("&amp;lt; &amp;#38;", "&lt; &#38;"),
            ("&nbsp; & &; &#; &#x; &#xD800; &#+65; &lt", "&nbsp; & &; &#; &#x; &#xD800; &#+65; &lt"),
            ("&&lt;&éééééé;", "&<&éééééé;"),
        ] {
            assert_eq!(decoded(text), read);
        }
    }
}
