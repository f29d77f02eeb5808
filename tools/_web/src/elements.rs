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
    Heading(u8),
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
        "h4" => Role::Heading(4),
        "h5" => Role::Heading(5),
        "h6" => Role::Heading(6),
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

/// Whether an element is a tag alone.
pub(crate) fn has_no_end(name: &str) -> bool {
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
        .contains(&name)
}

/// Whether the end tag of an element may be missing. Left out, it ends with the element around it, or where the next of its kind begins.
pub(crate) fn may_not_end(name: &str) -> bool {
    matches!(name, "p" | "li" | "dt" | "dd" | "tr" | "td" | "th" | "thead" | "tbody" | "tfoot" | "option")
}

/// Whether people do not see an element, or it has no text. What is hidden from them may be meant for a model.
pub(crate) fn is_hidden(name: &str, role: Role, attribute: impl Fn(&str) -> Option<String>) -> bool {
    let is_hidden_style = |style: String| {
        let style: String = style.to_ascii_lowercase().split_whitespace().collect();
        ["display:none", "visibility:hidden", "visibility:collapse"].iter().any(|hides| style.contains(hides))
    };
    // Scripts show the whole of a page that they hid while it was loading.
    role == Role::Unread
        || !matches!(name, "html" | "body")
            && (attribute("hidden").is_some()
                || attribute("aria-hidden").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
                || attribute("style").is_some_and(is_hidden_style))
}

/// The roles of what is around the text of a page.
const AROUND_ROLES: &str =
    "navigation search banner contentinfo complementary menu menubar dialog alertdialog";
/// The words in the classes of what is around the text of a page.
const AROUND_CLASSES: &str =
    "navigation navbar navbox breadcrumb breadcrumbs dropdown cookie noprint editsection";

/// Whether an element is around the text of the page, by its name, its role, or a class that many pages agree on.
pub(crate) fn is_around(name: &str, role: Role, attribute: impl Fn(&str) -> Option<String>) -> bool {
    if role == Role::Main || may_not_end(name) || has_no_end(name) || matches!(name, "html" | "body") {
        return false;
    }
    let by_role = |role: String| AROUND_ROLES.split(' ').any(|around| around == role.trim());
    let by_class = |class: String| {
        let mut words = class.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| AROUND_CLASSES.split(' ').any(|around| around == word))
    };
    role == Role::Around || attribute("role").is_some_and(by_role) || attribute("class").is_some_and(by_class)
}
