//! Reads web pages: as Markdown for a model, or as plain lines for an index. Navigation, scripts and what is marked as
//! hidden from people are left out.
//!
//! ```
//! let address = url::Url::parse("https://example.org/docs/")?;
//! let page = toolrack_web::to_markdown("<title>T</title><h1>Hello</h1><p>See <a href=more>more</a>.", &address);
//! assert_eq!(page.title.as_deref(), Some("T"));
//! assert_eq!(page.content, "# Hello\n\nSee [more](https://example.org/docs/more).");
//! # Ok::<(), url::ParseError>(())
//! ```
//!
//! A page is read in one pass over its tokens, without a tree: however deep its elements nest, reading takes time
//! linear in its length and no stack.

mod elements;
mod lines;
mod skipping;
mod writer;

use html5gum::{Token, Tokenizer, emitters::default::DefaultEmitter};
use url::Url;

use crate::writer::Writer;

/// What is read of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<Content> {
    /// What `<title>` says.
    pub title: Option<String>,
    /// What `<html lang>` says.
    pub language: Option<String>,
    /// What `<meta name content>` say, with names in lower case.
    pub metadata: Vec<(String, String)>,
    /// Its text.
    pub content: Content,
}

/// A line of a text as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it is in the source, from 1: its line, and in a PDF its page.
    pub number: u32,
    /// What it says, without the mark of a heading.
    pub text: String,
    /// The level of a heading from 1 to 6; 0 for text.
    pub heading: u8,
    /// Whether spaces matter in it, as in code or a table, whose lines are no sentences.
    pub verbatim: bool,
}

impl Line {
    /// A line of text.
    pub fn text(number: u32, text: impl Into<String>) -> Self {
        Self { number, text: text.into(), heading: 0, verbatim: false }
    }

    /// A heading.
    pub fn heading(number: u32, level: u8, text: impl Into<String>) -> Self {
        Self { heading: level, ..Self::text(number, text) }
    }
}

/// A page as Markdown, the main part of it where it says which that is. `address` is where it is from, for its links.
pub fn to_markdown(html: &str, address: &Url) -> Page<String> {
    // A page whose navigation never closes has nothing else.
    let page = Writer::new(Some(address), true).read(html).into_markdown();
    if page.content.is_empty() { Writer::new(Some(address), false).read(html).into_markdown() } else { page }
}

/// A page as plain lines with their place in the source. An empty line stands between paragraphs. `None` where it has more than `most` lines
/// of text.
pub fn to_lines(html: &str, most: usize) -> Option<Page<Vec<Line>>> {
    let read = |skips_around| Writer::new(None, skips_around).at_most(most).read(html).into_lines();
    let page = read(true)?;
    if page.content.is_empty() { read(false) } else { Some(page) }
}

/// The text of a piece of HTML, in one line.
pub fn to_line(html: &str) -> String {
    let mut text = String::new();
    for token in tokens(html) {
        if let Token::String(piece) = token {
            text.push_str(&String::from_utf8_lossy(&piece));
        }
    }
    one_line(&text)
}

fn tokens(html: &str) -> impl Iterator<Item = Token<usize>> {
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    // Without it the code of a script would be read as markup.
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(html, emitter).flatten()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(html: &str) -> Page<Vec<Line>> {
        to_lines(html, usize::MAX).unwrap()
    }

    fn page(html: &str) -> Page<String> {
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
            assert_eq!(page(html).content, markdown, "{html}");
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
            assert_eq!(page(html).content, "yes", "{html}");
        }
        assert_eq!(page("<nav>all there is").content, "all there is");
    }

    #[test]
    fn the_main_part_is_taken_where_there_is_one() {
        let text = "Words of the text. ".repeat(20);
        let text = text.trim();
        let html =
            format!("<div>around</div><main><header><h1>T</h1></header>{text}</main><div>around</div>");
        assert_eq!(page(&html).content, format!("# T\n\n{text}"));
        let html = format!("<div>a</div><article>{text}</article><article>{text}</article>");
        assert_eq!(page(&html).content, format!("a\n\n{text}\n\n{text}"));
        assert_eq!(page("<div>a</div><main>short</main>").content, "a\n\nshort");
        assert_eq!(page(&format!("<div>a</div><main>{text}")).content, text);
    }

    #[test]
    fn the_title_is_found() {
        let page = page("<html><head><title> A &amp;\n B </title></head><svg><title>no</title></svg>x");
        assert_eq!((page.title.as_deref(), page.content.as_str()), (Some("A & B"), "x"));
        assert_eq!(super::to_markdown("<title></title>", &Url::parse("http://a/").unwrap()).title, None);
    }

    #[test]
    fn a_line_is_text_only() {
        assert_eq!(to_line("It&#x27;s <strong>one</strong>\n line"), "It's one line");
    }

    /// Numbered, with the level of a heading before the number and `!` behind that of code.
    fn shown(html: &str) -> Vec<String> {
        let lines = lines_of(html).content.into_iter().filter(|line| !line.text.is_empty());
        lines
            .map(|line| {
                let verbatim = if line.verbatim { "!" } else { "" };
                format!("{}{}{verbatim} {}", "#".repeat(line.heading.into()), line.number, line.text)
            })
            .collect()
    }

    #[test]
    fn p6_lines_have_their_place_and_no_marks() {
        for (html, lines) in [
            (
                "<title>T</title>\n<h1>A\n<b>b</b></h1>\n<p>One\n two</p><p>\nthree<br>four\n<ul>\n<li>x<li>y</ul>\n<h6>C</h6>",
                &["#2 A b", "4 One two", "6 three", "6 four", "8 x", "8 y", "######9 C"][..],
            ),
            ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", &["1 a | b", "1 1 | 2"]),
            ("a\n<pre>x\n  y\n\nz</pre>b", &["1 a", "2! x", "3!   y", "5! z", "5 b"]),
            ("<pre>a<b>b</b>\n</pre><blockquote>c<hr>d", &["1! ab", "2 c", "2 d"]),
            ("see <a href=/x>this</a> <code>f</code><img src=x alt=y>", &["1 see this f"]),
            ("<header><h1>H</h1></header><main>x</main>y", &["#1 H", "1 x", "1 y"]),
        ] {
            assert_eq!(shown(html), lines, "{html}");
        }
        let lines: Vec<_> = lines_of("<p>a<p>b<br>c").content.into_iter().map(|line| line.text).collect();
        assert_eq!(lines, ["a", "", "b", "c"]);
    }

    #[test]
    fn p6_a_page_says_what_it_is() {
        let page = lines_of("<html lang=' de'><meta name=Author content='A\n B'><meta charset=utf-8>x");
        assert_eq!(page.language.as_deref(), Some("de"));
        assert_eq!(page.metadata, [("author".to_owned(), "A B".to_owned())]);
    }

    #[test]
    fn a17_what_is_marked_as_hidden_is_left_out_and_nothing_else() {
        for html in [
            "<p hidden>no<p>yes",
            "<p hidden>no</p>yes",
            "<p hidden>no <b>no</b></b> no<div>yes</div>",
            "<div><p hidden>no <i>no</div>yes",
            "<ul><li hidden>no<ul><li>no</ul>no<li>yes</ul>",
            "<ul><li style='visibility: hidden !important'>no</ul>yes",
            "<table><tr hidden><td>no<table><tr><td>no</table>no<tr><td>yes</table>",
            "<table><tr><td aria-hidden=TRUE>no</table>yes",
            "<table><tbody hidden><tr><td>no<tbody><tr><td>yes</table>",
            "<dl><dt hidden>no<dd style='color:red;display:none'>no<dd>yes</dl>",
            "<p style=display:none>no<br>no<img alt=no><input>no</p>yes",
            "<img hidden alt=no>yes<h2 hidden>no</h2><em hidden>no</em><label hidden>no</label>",
            "<body style=visibility:hidden>yes",
            "<p style='visibility:collapse'>no</p>yes",
        ] {
            let lines: String = lines_of(html).content.into_iter().map(|line| line.text).collect();
            assert_eq!(lines, "yes", "{html}");
            let markdown = page(html).content;
            assert_eq!(markdown.trim_start_matches(['-', ' ']), "yes", "{html}");
        }
    }

    fn random_below(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(*state >> 33).unwrap() % below
    }

    #[test]
    fn k22_no_order_of_tags_loses_text() {
        let names = "a code pre p li ul ol h1 main article table tr td th blockquote div br b";
        let names: Vec<&str> = names.split(' ').collect();
        let mut state = 1;
        let mut random = |below| random_below(&mut state, below);
        for _ in 0..1_000 {
            let html: String = (0..40)
                .map(|_| match random(4) {
                    0 => format!("</{}>", names[random(names.len())]),
                    1 => ["é", " ", "é", "a\n b", "&amp;", "`"][random(6)].to_owned(),
                    _ => format!(
                        "<{} href='{}' start=4294967295>",
                        names[random(names.len())],
                        ["/", "x"][random(2)]
                    ),
                })
                .collect();
            let count = |text: &str| text.matches(['é', 'a', '&']).count();
            let text: String = lines_of(&html).content.into_iter().map(|line| line.text).collect();
            assert_eq!(count(&text), count(&to_line(&html)), "{html}");
            assert!(!page(&html).content.contains('<'), "{html}");
        }
    }

    /// A recursion would end the process, and what is written stays in proportion to what is read.
    #[test]
    fn k22_no_page_is_deep_or_grows() {
        let pieces = [
            "<div>",
            "<ul><li>x",
            "<blockquote>x",
            "<a href=x>",
            "<code>x",
            "<pre>",
            "<pre>\n",
            "<b>x</b>",
            "<table><tr><td>",
            "&lt;",
            "<main>",
            "</ul></main></pre></a>",
            "</div>",
            "<nav>",
            "<p hidden>",
            "<li hidden><ul>",
            "<!--",
            "<x a=b ",
            "<a href=x>y</a>",
            "<td><th>x</tr>",
            "<h1>x</h2>",
            "<meta name=a content=b>",
        ];
        let read = move || {
            for piece in pieces {
                // A megabyte of what nests most easily.
                let count = if piece == "<div>" { 200_000 } else { 10_000 };
                let html = piece.repeat(count);
                let markdown = page(&html).content;
                assert!(markdown.len() <= 100 * count, "{piece}: {}", markdown.len());
                let lines = lines_of(&html).content;
                let length: usize = lines.iter().map(|line| line.text.len() + 1).sum();
                assert!(length <= html.len() + count, "{piece}: {length}");
            }
        };
        std::thread::Builder::new().stack_size(256 * 1024).spawn(read).unwrap().join().unwrap();
    }
}
