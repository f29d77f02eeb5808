//! HTML: the text that people see, with its headings.

use serde_json::{Map, Value};

use super::{MAX_LINES, Text, too_many_lines};

/// What is kept of what a page says of itself.
const METADATA: [&str; 4] = ["author", "description", "keywords", "date"];

pub(super) fn read(html: &str) -> Result<Text, String> {
    let page = toolrack_web::to_lines(html, MAX_LINES).ok_or_else(too_many_lines)?;
    let lines = page.content;
    let first_heading = lines.iter().find(|line| line.heading == 1).map(|line| line.text.clone());
    let metadata: Map<String, Value> = page
        .metadata
        .into_iter()
        .filter(|(name, _)| METADATA.contains(&name.as_str()))
        .map(|(name, content)| (name, content.into()))
        .collect();
    Ok(Text { title: page.title.or(first_heading), language: page.language, metadata, lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(html: &str) -> Vec<String> {
        let lines = read(html).unwrap().lines.into_iter().filter(|line| !line.text.is_empty());
        lines
            .map(|line| format!("{}{} {}", "#".repeat(line.heading.into()), line.number, line.text))
            .collect()
    }

    #[test]
    fn p6_html_is_text_with_headings_and_lines() {
        assert_eq!(
            shown(
                "<title>T</title>\n<h1>A\n<b>b</b></h1>\n<p>One\n two</p><p>\nthree<br>four\n<ul>\n<li>x<li>y</ul>\n<h2>C</h2><table><tr><td>1<td>2</table>"
            ),
            ["#2 A b", "4 One two", "6 three", "6 four", "8 x", "8 y", "##9 C", "9 1 | 2"]
        );
        assert_eq!(shown("a\n<pre>x\n  y\n\nz</pre>b"), ["1 a", "2 x", "3   y", "5 z", "5 b"]);
        assert_eq!(shown("caf&eacute; &lt;b&gt;"), ["1 café <b>"]);
    }

    #[test]
    fn p6_what_people_do_not_see_is_left_out() {
        for html in [
            "<script>if (a < b) { x('<p>no</p>') }</script>yes",
            "<style>p{}</style>yes<noscript>no</noscript>",
            "<nav><ul><li>no</ul><nav>no</nav></nav>yes<footer>no</footer>",
            "<div hidden>no<div>no</div></div>yes<span style='DISPLAY : none'>no</span>",
            "<!-- no -->y&shy;es<template>no</template>",
        ] {
            assert_eq!(shown(html), ["1 yes"], "{html}");
        }
        assert_eq!(shown("<nav>all there is"), ["1 all there is"]);
    }

    #[test]
    fn p6_a_page_says_what_it_is() {
        let text = read(
            "<html lang=de><title>A &amp;\n b</title><meta name=author content=Ada><meta name=viewport content=x><h1>H</h1>",
        )
        .unwrap();
        assert_eq!((text.title.as_deref(), text.language.as_deref()), (Some("A & b"), Some("de")));
        assert_eq!(Value::Object(text.metadata), serde_json::json!({"author": "Ada"}));
        assert_eq!(read("<h1>H</h1>").unwrap().title.as_deref(), Some("H"));
    }
}
