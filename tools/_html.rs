//! HTML as Markdown that a model reads well: headings, paragraphs, lists, links, code and tables, and none of the rest.
//!
//! One pass over the tokens, without a tree, so that no page can make it slow or deep.

use html5gum::{Token, Tokenizer, emitters::default::DefaultEmitter};
use toolrack_http::reqwest::Url;

use crate::markdown::Writer;

/// What is read of a page.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) title: Option<String>,
    pub(crate) markdown: String,
}

/// A page as Markdown, the main part of it where it says which that is. `address` is where it is from, for its links.
pub(crate) fn to_markdown(html: &str, address: &Url) -> Page {
    let page = Writer::new(address, true).read(html);
    // A page whose navigation never closes has nothing else.
    if page.markdown.is_empty() { Writer::new(address, false).read(html) } else { page }
}

/// The text of a piece of HTML, in one line.
pub(crate) fn to_line(html: &str) -> String {
    let mut text = String::new();
    for token in tokens(html) {
        if let Token::String(piece) = token {
            text.push_str(&String::from_utf8_lossy(&piece));
        }
    }
    one_line(&text)
}

pub(crate) fn tokens(html: &str) -> impl Iterator<Item = Token> {
    let mut emitter = DefaultEmitter::default();
    // Without it the code of a script would be read as markup.
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(html, emitter).flatten()
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(html: &str) -> Page {
        to_markdown(html, &Url::parse("https://example.org/docs/page?x=1").unwrap())
    }

    #[test]
    fn elements_become_markdown() {
        for (html, markdown) in [
            ("<h1>One</h1><h2>Two</h2>text", "# One\n\n## Two\n\ntext"),
            ("<p>a  b\n c</p><p>d", "a b c\n\nd"),
            ("a<br>b<div>c</div>d", "a\nb\nc\nd"),
            ("<b>bold</b> and <i>it</i>alic", "bold and italic"),
            ("x &amp; y &lt;z&gt; &eacute; &#8364;", "x & y <z> é €"),
            ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e", "- a\n- b\n  - c\n- d\n\ne"),
            ("<ol start=3><li><p>a</p></li><li>b</li></ol>", "3. a\n4. b"),
            ("<blockquote><p>a</p><p>b</p></blockquote>c", "> a\n>\n> b\n\nc"),
            ("<pre><code>fn a() {\n    b\n}\n</code></pre>x", "```\nfn a() {\n    b\n}\n```\n\nx"),
            ("use <code>a b</code>.", "use `a b`."),
            ("<a href='/x y'>a <b>link</b></a>.", "[a link](https://example.org/x%20y)."),
            ("<a href='other'><code>f</code></a>", "[`f`](https://example.org/docs/other)"),
            ("<a href='/x'><h3>Head</h3></a>t", "### [Head](https://example.org/x)\n\nt"),
            ("<a href='#here'>a</a> <a href='javascript:x()'>b</a> <a>c</a> <a href='/'></a>d", "a b c d"),
            ("<base href='https://other.example/'><a href='x'>a</a>", "[a](https://other.example/x)"),
            ("<img src=x alt='A cat'> sits<img src=y alt=''>", "(image: A cat) sits"),
            ("<h2>Head<a href='#head'>¶</a></h2><a href='#n'>1</a>", "## Head\n\n1"),
            ("a&nbsp;<b>&nbsp;b</b>", "a b"),
            ("<a href='?x=1#n'>a</a>", "a"),
            ("hid\u{200b}den\u{e0041}\u{e0042} &#8203; &shy;x", "hidden x"),
            ("<table><tr><td>a<td><ul><li>b<li>c</ul></table>", "a |\n\n- b\n- c"),
            ("a<hr>b", "a\n\n---\n\nb"),
            (
                "<table><tr><th>a<th>b</tr><tr><td>1<td><div>2</div></tr><tr><td></td><td>3</table>x",
                "a | b\n--- | ---\n1 | 2\n | 3\n\nx",
            ),
        ] {
            assert_eq!(page(html).markdown, markdown, "{html}");
        }
    }

    #[test]
    fn what_is_not_read_is_left_out() {
        for html in [
            "<script>if (a < b) { x('<p>no</p>') }</script>yes",
            "<style>p { color: red }</style>yes<noscript>no</noscript>",
            "<nav><ul><li><a href=x>no</a></ul><nav>no</nav></nav><header>no</header>yes<footer>no</footer>",
            "<div role=navigation>no</div><div class='x page-breadcrumb'>no</div>yes<ul class='lang_dropdown'><li>no</ul>",
            "<div hidden>no<div>no</div></div>yes<span style='DISPLAY : none'>no</span>",
            "<a aria-hidden=true href=x>no</a>yes<!-- no --><template>no</template><svg><title>no</title></svg>",
            "<textarea><p>no</textarea><select><option>no</select>yes",
        ] {
            assert_eq!(page(html).markdown, "yes", "{html}");
        }
        assert_eq!(page("<nav>all there is").markdown, "all there is");
    }

    #[test]
    fn the_main_part_is_taken_where_there_is_one() {
        let text = "Words of the text. ".repeat(20);
        let text = text.trim();
        let html =
            format!("<div>around</div><main><header><h1>T</h1></header>{text}</main><div>around</div>");
        assert_eq!(page(&html).markdown, format!("# T\n\n{text}"));
        let html = format!("<div>a</div><article>{text}</article><article>{text}</article>");
        assert_eq!(page(&html).markdown, format!("a\n\n{text}\n\n{text}"));
        assert_eq!(page("<div>a</div><main>short</main>").markdown, "a\n\nshort");
        assert_eq!(page(&format!("<div>a</div><main>{text}")).markdown, text);
    }

    #[test]
    fn the_title_is_found() {
        let page = page("<html><head><title> A &amp;\n B </title></head><svg><title>no</title></svg>x");
        assert_eq!((page.title.as_deref(), page.markdown.as_str()), (Some("A & B"), "x"));
        assert_eq!(super::to_markdown("<title></title>", &Url::parse("http://a/").unwrap()).title, None);
    }

    #[test]
    fn a_line_is_text_only() {
        assert_eq!(to_line("It&#x27;s <strong>one</strong>\n line"), "It's one line");
    }

    #[test]
    fn no_order_of_tags_is_too_much() {
        let names =
            "a code pre p li ul ol h1 main article table tr td th blockquote div br nav header title b";
        let names: Vec<&str> = names.split(' ').collect();
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        for _ in 0..1_000 {
            let html: String = (0..40)
                .map(|_| match random(4) {
                    0 => format!("</{}>", names[random(names.len())]),
                    1 => ["é", " ", "¶", "a\n b", "&amp;", "`"][random(6)].to_owned(),
                    _ => format!(
                        "<{} href='{}' start=4294967295>",
                        names[random(names.len())],
                        ["#", "x"][random(2)]
                    ),
                })
                .collect();
            page(&html);
        }
    }

    /// Where elements recurse each of these ends the process.
    #[test]
    fn no_page_is_slow_or_deep() {
        let many = 10_000;
        let started = std::time::Instant::now();
        for piece in [
            "<div>",
            "<ul><li>x",
            "<blockquote>x",
            "<a href=x>",
            "<code>x",
            "<pre>",
            "<b>x</b>",
            "<table><tr><td>",
            "&lt;",
            "<main>",
            "</ul></main></pre></a>",
            "<nav>",
            "<p hidden>",
            "<!--",
            "<x a=b ",
            "<a href=x>y</a>",
            "<td><th>x</tr>",
        ] {
            let page = page(&piece.repeat(many));
            assert!(page.markdown.len() < 5_000_000, "{piece}");
        }
        assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    }
}
