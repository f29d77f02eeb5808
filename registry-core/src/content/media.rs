//! Bytes that a tool gives: pictures, sound, files.

use std::{borrow::Cow, fmt};

use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

use super::{Content, base64, base64_length};
use crate::{result::ToolError, text::is_invisible};

/// The longest name of a file, in bytes.
const MAX_NAME: usize = 120;
/// What of a name is written as `%XX` in its address.
const IN_ADDRESS: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'#').add(b'?').add(b'/').add(b'\\');
/// What no file's name has on one of the systems that may save it.
const FORBIDDEN: &[char] = &['/', '\\', ':', '*', '?', '"', '<', '>', '|'];
/// The media type of bytes of which nothing is known.
const BYTES: &str = "application/octet-stream";

/// So much Base64 tells what bytes are.
const BEGINNING: usize = 512;

/// Media types that are not known by their bytes, and endings that are not the second half of the media type.
const ENDINGS: &[(&str, &str)] = &[
    ("txt", "text/plain"),
    ("csv", "text/csv"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("svg", "image/svg+xml"),
    ("ics", "text/calendar"),
    ("jpg", "image/jpeg"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/x-wav"),
    ("bin", BYTES),
];

/// A picture, as what a tool returns. A chat shows it to the person, and to a model that can see.
#[derive(Clone, PartialEq)]
pub struct Image(Content);

impl Image {
    /// A picture. Its format is known by its first bytes: PNG, JPEG, GIF, WebP, AVIF, BMP, TIFF and others.
    ///
    /// ```
    /// use registry_core::Image;
    ///
    /// assert!(Image::new(b"\x89PNG\r\n\x1a\n...").is_ok());
    /// assert!(Image::new("no picture").unwrap_err().message().contains("Image::of_type"));
    /// ```
    ///
    /// # Errors
    /// When the bytes are not those of a known format.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, ToolError> {
        let bytes = bytes.as_ref();
        let media_type = detected(bytes, "image/").ok_or_else(|| unknown(bytes, "a picture", "Image"))?;
        Ok(Self(Content::image(bytes, media_type)))
    }

    /// A picture of a format that is not known by its bytes, such as `image/svg+xml`.
    ///
    /// # Errors
    /// When the media type is not one of pictures.
    pub fn of_type(media_type: &str, bytes: impl AsRef<[u8]>) -> Result<Self, ToolError> {
        Ok(Self(Content::image(bytes, checked(media_type, "image/")?)))
    }
}

/// Sound, as what a tool returns. A chat plays it to the person.
#[derive(Clone, PartialEq)]
pub struct Audio(Content);

impl Audio {
    /// Sound. Its format is known by its first bytes: WAV, MP3, Ogg, FLAC, M4A and others.
    ///
    /// # Errors
    /// When the bytes are not those of a known format.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, ToolError> {
        let bytes = bytes.as_ref();
        let media_type = detected(bytes, "audio/").ok_or_else(|| unknown(bytes, "sound", "Audio"))?;
        Ok(Self(Content::audio(bytes, media_type)))
    }

    /// Sound of a format that is not known by its bytes.
    ///
    /// # Errors
    /// When the media type is not one of sound.
    pub fn of_type(media_type: &str, bytes: impl AsRef<[u8]>) -> Result<Self, ToolError> {
        Ok(Self(Content::audio(bytes, checked(media_type, "audio/")?)))
    }
}

/// A file, as what a tool returns. A chat lets the person download it; the model learns its name, type and size.
#[derive(Clone, PartialEq)]
pub struct File {
    name: String,
    media_type: String,
    base64: String,
}

impl File {
    /// A file. Of the name only what is after the last slash counts, without characters that a file system refuses. The media type
    /// is known by the bytes, or else by the ending of the name.
    pub fn new(name: impl AsRef<str>, bytes: impl AsRef<[u8]>) -> Self {
        let (name, bytes) = (safe_name(name.as_ref()), bytes.as_ref());
        let media_type = detected(bytes, "").or_else(|| by_ending(&name)).unwrap_or(BYTES).to_owned();
        Self { name, media_type, base64: base64(bytes) }
    }

    /// With another media type, such as `text/calendar`.
    ///
    /// # Errors
    /// When it is not a media type.
    pub fn of_type(self, media_type: &str) -> Result<Self, ToolError> {
        Ok(Self { media_type: checked(media_type, "")?, ..self })
    }
}

impl From<Image> for Content {
    fn from(image: Image) -> Self {
        image.0
    }
}

impl From<Audio> for Content {
    fn from(audio: Audio) -> Self {
        audio.0
    }
}

impl From<File> for Content {
    fn from(file: File) -> Self {
        let uri = format!("file:///{}", utf8_percent_encode(&file.name, IN_ADDRESS));
        let fields = [("uri", uri), ("mimeType", file.media_type), ("blob", file.base64)];
        let resource = fields.into_iter().map(|(key, text)| (key.to_owned(), Value::String(text)));
        Self::Resource { resource: resource.collect() }
    }
}

/// Without the bytes.
impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({})", self.0.for_model())
    }
}

impl fmt::Debug for Audio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Audio({})", self.0.for_model())
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({}, {}, {} bytes)", self.name, self.media_type, base64_length(&self.base64))
    }
}

/// The bytes of a [`Content`], with what is known of them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Blob<'c> {
    /// A name under which they can be saved.
    pub name: String,
    /// The media type, as the tool gives it.
    pub media_type: &'c str,
    /// The bytes in Base64.
    pub base64: &'c str,
}

impl Blob<'_> {
    /// How many bytes there are.
    pub fn size(&self) -> usize {
        base64_length(self.base64)
    }
}

impl Content {
    /// The bytes of a picture, of sound, or of a file; `None` for what is text.
    pub fn blob(&self) -> Option<Blob<'_>> {
        let (name, media_type, base64) = match self {
            Self::Image { data, mime_type } => (named("image", mime_type), mime_type.as_str(), data.as_str()),
            Self::Audio { data, mime_type } => (named("sound", mime_type), mime_type.as_str(), data.as_str()),
            Self::Resource { resource } => {
                let of = |key| text_of(resource, key);
                let base64 = of("blob")?;
                let media_type = of("mimeType").or_else(|| detected_in(base64)).unwrap_or(BYTES);
                (name_in(of("uri").unwrap_or_default(), media_type), media_type, base64)
            }
            _ => return None,
        };
        Some(Blob { name, media_type, base64 })
    }
}

pub(super) fn text_of<'m>(from: &'m Map<String, Value>, key: &str) -> Option<&'m str> {
    from.get(key).and_then(Value::as_str)
}

/// The name of a file that an address ends in.
fn name_in(uri: &str, media_type: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let name: Cow<'_, str> = percent_decode_str(last).decode_utf8_lossy();
    if name.is_empty() { named("file", media_type) } else { safe_name(&name) }
}

/// A name for bytes that have none.
fn named(stem: &str, media_type: &str) -> String {
    let known = ENDINGS.iter().find(|(_, known)| *known == media_type).map(|(ending, _)| *ending);
    let half = media_type.split_once('/').map_or("", |(_, half)| half.trim_start_matches("x-"));
    let is_plain = !half.is_empty() && half.len() <= 8 && half.chars().all(|c| c.is_ascii_alphanumeric());
    let ending = known.unwrap_or(if is_plain { half } else { "bin" });
    format!("{stem}.{ending}")
}

/// A name that every file system takes and that leads nowhere else.
fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_kept = |c: &char| !c.is_control() && !FORBIDDEN.contains(c) && !is_unseen(*c);
    let kept: String = last.chars().filter(is_kept).collect();
    // Windows drops what is at the end; a point at the beginning hides a file.
    let kept = kept.trim().trim_matches('.').trim();
    if kept.is_empty() {
        return "file".to_owned();
    }
    let stem = kept.split('.').next().unwrap_or_default().trim().to_ascii_uppercase();
    let device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || (stem.len() == 4 && (stem.starts_with("COM") || stem.starts_with("LPT")));
    let kept = if device { format!("_{kept}") } else { kept.to_owned() };
    if kept.len() <= MAX_NAME {
        return kept;
    }
    // The ending says what it is.
    let (stem, ending) = match kept.rsplit_once('.') {
        Some((stem, ending)) if ending.len() <= 10 => (stem, format!(".{ending}")),
        _ => (kept.as_str(), String::new()),
    };
    let end = stem.floor_char_boundary(MAX_NAME - ending.len());
    format!("{}{ending}", stem.get(..end).unwrap_or_default())
}

/// Characters that are not seen, or turn the direction of text, so that `exe.txt` is shown for `txt.exe`; joiners are among them.
fn is_unseen(c: char) -> bool {
    is_invisible(c) || matches!(c, '\u{200c}' | '\u{200d}')
}

/// The media type that the bytes begin like.
fn detected(bytes: &[u8], begins: &str) -> Option<&'static str> {
    let kind = infer::get(bytes)?;
    Some(kind.mime_type()).filter(|media_type| media_type.starts_with(begins))
}

/// The media type of bytes in Base64.
fn detected_in(base64: &str) -> Option<&'static str> {
    let beginning = base64.get(..base64.len().min(BEGINNING) / 4 * 4)?;
    detected(&BASE64_STANDARD.decode(beginning).ok()?, "")
}

fn by_ending(name: &str) -> Option<&'static str> {
    let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
    ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, media_type)| *media_type)
}

/// The media type, in lower case and without parameters.
fn checked(media_type: &str, begins: &str) -> Result<String, ToolError> {
    let plain = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_token = |text: &str| {
        !text.is_empty()
            && text.len() <= 100
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c))
    };
    let is_one = plain.split_once('/').is_some_and(|(one, other)| is_token(one) && is_token(other));
    if is_one && plain.starts_with(begins) {
        return Ok(plain);
    }
    let such = if begins.is_empty() { "text/csv" } else { begins };
    Err(fault(format!("`{media_type}` is not a media type such as `{such}…`")))
}

fn unknown(bytes: &[u8], what: &str, ty: &str) -> ToolError {
    let length = bytes.len();
    fault(format!(
        "{length} bytes are not {what} in a format that is known by its bytes; name the format with `{ty}::of_type`, or return a `File`"
    ))
}

/// The tool's code is at fault, and the model can do nothing about it.
fn fault(message: String) -> ToolError {
    ToolError::failed(message).with_feedback("The tool failed with a fault of its own. Do not call it again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b19_the_media_type_is_known_by_the_bytes_or_given() {
        let png = b"\x89PNG\r\n\x1a\n0000";
        let Content::Image { mime_type, data } = Image::new(png).unwrap().into() else { panic!() };
        assert_eq!((mime_type.as_str(), data.as_str()), ("image/png", "iVBORw0KGgowMDAw"));
        for (bytes, media_type) in [
            (&b"\xff\xd8\xff\xe0"[..], "image/jpeg"),
            (b"GIF89a", "image/gif"),
            (b"RIFF0000WEBP", "image/webp"),
        ] {
            let content = Content::from(Image::new(bytes).unwrap());
            assert_eq!(content.blob().unwrap().media_type, media_type);
        }
        let wav = Content::from(Audio::new(b"RIFF0000WAVE").unwrap());
        assert_eq!(wav.blob().unwrap().name, "sound.wav");
        // Sound is no picture, and text neither.
        for bytes in [&b"RIFF0000WAVE"[..], b"text", b""] {
            let error = Image::new(bytes).unwrap_err();
            assert!(error.message().contains("`Image::of_type`"), "{error}");
            assert!(!error.feedback().contains("of_type"), "{}", error.feedback());
        }
        let svg = Content::from(Image::of_type("image/SVG+xml; charset=utf-8", "<svg/>").unwrap());
        assert_eq!(
            (svg.blob().unwrap().name, svg.blob().unwrap().media_type),
            ("image.svg".into(), "image/svg+xml")
        );
        for wrong in ["png", "image", "image/", "audio/wav", "image/a b", "image/\r\nx: y", ""] {
            assert!(Image::of_type(wrong, png).is_err(), "{wrong}");
        }
        assert!(Audio::of_type("audio/opus", "x").is_ok() && Audio::of_type("image/png", png).is_err());
    }

    #[test]
    fn g12_a_resource_that_says_nothing_of_itself_is_known_by_its_bytes() {
        let of = |resource| {
            let content: Content =
                serde_json::from_value(serde_json::json!({"type": "resource", "resource": resource}))
                    .unwrap();
            content.blob().unwrap().media_type.to_owned()
        };
        let png = base64(&[&b"\x89PNG\r\n\x1a\n"[..], &[0; 999]].concat());
        assert_eq!(of(serde_json::json!({"uri": "a:b", "blob": png})), "image/png");
        assert_eq!(of(serde_json::json!({"uri": "a:b", "blob": png, "mimeType": "text/csv"})), "text/csv");
        for unknown in ["", "AAAA", "%", "\u{e9}\u{e9}\u{e9}"] {
            assert_eq!(of(serde_json::json!({"uri": "a:b", "blob": unknown})), BYTES);
        }
    }

    #[test]
    fn b19_a_file_is_known_by_its_bytes_or_its_name() {
        let of = |name, bytes: &[u8]| {
            let content = Content::from(File::new(name, bytes));
            let blob = content.blob().unwrap();
            (blob.name.clone(), blob.media_type.to_owned(), blob.size())
        };
        assert_eq!(of("r.pdf", b"%PDF-1.7"), ("r.pdf".into(), "application/pdf".into(), 8));
        assert_eq!(of("a b%.csv", b"a,b"), ("a b%.csv".into(), "text/csv".into(), 3));
        assert_eq!(of("x", b""), ("x".into(), BYTES.into(), 0));
        let file = File::new("x.dat", "a").of_type("text/calendar").unwrap();
        assert_eq!(format!("{file:?}"), "File(x.dat, text/calendar, 1 bytes)");
        assert!(file.of_type("calendar").is_err());
    }

    #[test]
    fn b19_the_name_of_a_file_is_safe() {
        for (name, safe) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\a\\b.txt", "b.txt"),
            ("a\r\nb\0.txt", "ab.txt"),
            ("\u{202e}txt.exe", "txt.exe"),
            ("a\u{61c}b\u{ad}\u{e0041}.txt", "ab.txt"),
            ("<a>:\"b|?*.txt", "ab.txt"),
            (".bashrc", "bashrc"),
            ("..", "file"),
            ("", "file"),
            ("a/", "file"),
            ("con", "_con"),
            ("Lpt1.txt", "_Lpt1.txt"),
            ("Bericht für Ölgå.md", "Bericht für Ölgå.md"),
        ] {
            assert_eq!(safe_name(name), safe, "{name:?}");
            // As a remote tool may name it.
            assert_eq!(Content::from(File::new(name, "a")).blob().unwrap().name, safe, "{name:?}");
        }
        let long = safe_name(&format!("{}.jpeg", "ü".repeat(200)));
        assert!(long.len() <= MAX_NAME && long.ends_with("ü.jpeg"), "{long}");
        assert!(safe_name(&"a".repeat(500)).len() <= MAX_NAME);
        for (uri, name) in [
            ("https://a.example/b/c.pdf?d=/e", "c.pdf"),
            ("file:///..%2F..%2Fpasswd", "passwd"),
            ("file:///", "file.pdf"),
            ("", "file.pdf"),
        ] {
            assert_eq!(name_in(uri, "application/pdf"), name, "{uri}");
        }
        assert_eq!(named("image", "image/x-odd thing"), "image.bin");
    }
}
