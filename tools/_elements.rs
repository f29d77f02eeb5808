//! What the elements of HTML are to a reader.

/// What an element is to a reader.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Role {
    /// Never text.
    Unread,
    /// Around the text of the page: navigation and the like.
    Around,
    /// The text of the page.
    Main,
    Heading(usize),
    /// Apart from what is before and after it.
    Block,
    /// On lines of its own.
    Line,
    Item,
    List,
    Quote,
    Preformatted,
    Code,
    Link,
    Table,
    Row,
    Cell,
    Inline,
}

pub(crate) fn role(name: &str) -> Role {
    match name {
        "script" | "style" | "noscript" | "template" | "svg" | "math" | "iframe" | "object" | "canvas"
        | "audio" | "video" | "select" | "button" | "textarea" | "dialog" | "datalist" => Role::Unread,
        "nav" | "aside" | "footer" | "header" | "menu" => Role::Around,
        "main" | "article" => Role::Main,
        "h1" => Role::Heading(1),
        "h2" => Role::Heading(2),
        "h3" => Role::Heading(3),
        "h4" | "h5" | "h6" => Role::Heading(4),
        "p" | "dl" | "figure" | "section" | "details" | "fieldset" => Role::Block,
        "div" | "dt" | "dd" | "summary" | "figcaption" | "address" | "center" | "form" | "caption"
        | "legend" | "option" | "hgroup" | "body" => Role::Line,
        "li" => Role::Item,
        "ul" | "ol" => Role::List,
        "blockquote" => Role::Quote,
        "pre" | "listing" | "xmp" => Role::Preformatted,
        "code" | "kbd" | "samp" | "tt" => Role::Code,
        "a" => Role::Link,
        "table" => Role::Table,
        "tr" => Role::Row,
        "td" | "th" => Role::Cell,
        _ => Role::Inline,
    }
}

/// Whether the end of an element may be missing. Left out, it would take the rest of the page along.
fn may_not_end(name: &str) -> bool {
    matches!(
        name,
        "p" | "li"
            | "dt"
            | "dd"
            | "tr"
            | "td"
            | "th"
            | "option"
            | "body"
            | "html"
            | "br"
            | "hr"
            | "img"
            | "input"
            | "meta"
            | "link"
            | "base"
            | "wbr"
            | "source"
    )
}

/// Whether people do not see an element, or it has no text. What is hidden from them may be meant for a model.
pub(crate) fn is_hidden(name: &str, role: Role, attribute: impl Fn(&str) -> Option<String>) -> bool {
    let is_hidden_style = |style: String| {
        let style: String = style.to_ascii_lowercase().split_whitespace().collect();
        style.contains("display:none") || style.contains("visibility:hidden")
    };
    role == Role::Unread
        || !may_not_end(name)
            && (attribute("hidden").is_some()
                || attribute("aria-hidden").is_some_and(|value| value == "true")
                || attribute("style").is_some_and(is_hidden_style))
}

/// Whether an element is around the text of the page, by its name, its role, or a class that many pages agree on.
pub(crate) fn is_around(name: &str, role: Role, attribute: impl Fn(&str) -> Option<String>) -> bool {
    if role == Role::Main || may_not_end(name) {
        return false;
    }
    let by_role = |role: String| {
        matches!(
            role.trim(),
            "navigation"
                | "search"
                | "banner"
                | "contentinfo"
                | "complementary"
                | "menu"
                | "menubar"
                | "dialog"
                | "alertdialog"
        )
    };
    let by_class = |class: String| {
        class.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| {
            matches!(
                word,
                "navigation"
                    | "navbar"
                    | "navbox"
                    | "breadcrumb"
                    | "breadcrumbs"
                    | "dropdown"
                    | "cookie"
                    | "noprint"
                    | "editsection"
            )
        })
    };
    role == Role::Around || attribute("role").is_some_and(by_role) || attribute("class").is_some_and(by_class)
}

/// Whether nobody sees a character: fillers, marks of direction, and tags, in which a text for models only can be hidden.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    )
}
