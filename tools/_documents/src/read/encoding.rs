//! In which encoding a text is.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

/// HTML says its encoding among so many bytes at its beginning, or does not.
const DECLARED_WITHIN: usize = 1024;
/// By so many bytes it is guessed.
const GUESSED_BY: usize = 1024 * 1024;

/// A text and its encoding: that of its mark, UTF-8 where it is that, what HTML says of itself, or what it looks like.
pub(super) fn decoded(bytes: &[u8], is_html: bool) -> (String, &'static Encoding) {
    let encoding = encoding_of(bytes, is_html);
    (encoding.decode(bytes).0.into_owned(), encoding)
}

/// Whether it is certain to be a text: UTF-8, as far as it goes, or marked.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    let is_utf8 = || str::from_utf8(bytes).map_or_else(|fault| fault.error_len().is_none(), |_| true);
    is_marked(bytes) || !bytes.contains(&0) && is_utf8()
}

/// Whether a mark at its beginning says what it is.
pub(super) fn is_marked(bytes: &[u8]) -> bool {
    Encoding::for_bom(bytes).is_some()
}

fn encoding_of(bytes: &[u8], is_html: bool) -> &'static Encoding {
    if let Some((marked, _)) = Encoding::for_bom(bytes) {
        return marked;
    }
    let declared = if is_html { declared(bytes) } else { None };
    // Texts in this one are of the characters of ASCII alone.
    if declared != Some(ISO_2022_JP) && str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    declared.unwrap_or_else(|| guessed(bytes))
}

/// What `<meta charset>`, a `<meta>` with a content type, or `<?xml encoding?>` says, unless that cannot be.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..DECLARED_WITHIN).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let names = ["charset", "encoding"].into_iter().flat_map(|name| head.split(name).skip(1));
    let mut labels = names.filter_map(|behind| {
        let label = behind.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        Encoding::for_label(label.split(['"', '\'', ';', '>', '?', ' ', '/']).next()?.as_bytes())
    });
    labels.find(|encoding| ![UTF_8, UTF_16BE, UTF_16LE].contains(encoding))
}

fn guessed(bytes: &[u8]) -> &'static Encoding {
    let head = bytes.get(..GUESSED_BY).unwrap_or(bytes);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(head, head.len() == bytes.len());
    detector.guess(None, Utf8Detection::Deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_html_is_read_in_the_encoding_that_it_names() {
        for (label, text) in [
            ("Shift_JIS", "緑茶は七十五度で淹れる"),
            ("iso-2022-jp", "緑茶"),
            ("gbk", "绿茶"),
            ("EUC-KR", "녹차"),
            ("koi8-r", "Зелёный чай"),
            ("iso-8859-2", "Żółta herbata"),
            ("windows-1251", "чай"),
        ] {
            for head in [
                format!("<meta charset=\"{label}\">"),
                format!("<meta charset={label}>"),
                format!("<META http-equiv=Content-Type content='text/html; charset = {label}'>"),
                format!("<?xml version=\"1.0\" encoding=\"{label}\"?>"),
            ] {
                let page = format!("{head}<p>{text}</p>");
                let encoding = Encoding::for_label(label.as_bytes()).unwrap();
                let (bytes, ..) = encoding.encode(&page);
                assert_eq!(decoded(&bytes, true), (page, encoding), "{head}");
            }
        }
        // What it is goes before what it says.
        let page = "<meta charset=windows-1251><p>Grüner Tee".to_owned();
        assert_eq!(decoded(page.as_bytes(), true), (page, UTF_8));
        let (bytes, ..) =
            encoding_rs::WINDOWS_1252.encode("<meta charset=utf-8><p>Grüner Tee, dafür ein Löffel");
        assert!(decoded(&bytes, true).0.ends_with("Grüner Tee, dafür ein Löffel"));
    }

    #[test]
    fn p6_the_encoding_of_a_text_is_seen_by_what_is_in_it() {
        for (label, text) in [
            ("shift_jis", "緑茶は七十五度のお湯で淹れると甘みが出ます。紅茶は沸騰したお湯で淹れます。"),
            ("gbk", "绿茶应该用七十五度的水冲泡，红茶则需要沸腾的开水。"),
            ("euc-kr", "녹차는 칠십오 도의 물로 우리고 홍차는 끓는 물로 우립니다."),
            ("windows-1251", "Зелёный чай заваривают водой температурой семьдесят пять градусов."),
            (
                "windows-1252",
                "Grüner Tee wird bei fünfundsiebzig Grad aufgegossen, schwarzer möglichst heiß.",
            ),
        ] {
            let (bytes, encoding, _) = Encoding::for_label(label.as_bytes()).unwrap().encode(text);
            assert_eq!(decoded(&bytes, false), (text.to_owned(), encoding), "{label}");
        }
    }
}
