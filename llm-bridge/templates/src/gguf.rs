//! The template and its tokens out of a GGUF file, of which only the beginning is read.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>; the names of the fields are in its section on tokenizers.

use std::io::{BufRead, ErrorKind, Read, Seek, SeekFrom};

use crate::{MAX_SOURCE, TemplateError};

/// The most fields of a file; models have some dozens.
const MAX_FIELDS: u64 = 4096;
/// The longest name of a field, or text of a token, in bytes.
const MAX_NAME: u64 = 65_536;
/// The most values in the arrays of texts, which are passed over one by one; the largest vocabularies have some hundred thousands.
const MAX_TEXTS: u64 = 8_000_000;

/// What a GGUF file says about the prompts of its model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GgufTemplate {
    /// The source of the template.
    pub source: String,
    /// The text of the token that begins a prompt.
    pub bos_token: Option<String>,
    /// The text of the token that ends an answer.
    pub eos_token: Option<String>,
}

impl GgufTemplate {
    /// Reads the beginning of a file.
    ///
    /// # Errors
    /// When it is not a GGUF file, is broken, or has no template.
    pub fn read(file: &mut (impl BufRead + Seek)) -> Result<Self, TemplateError> {
        let mut file = File { file, texts: 0 };
        if file.bytes::<4>()? != *b"GGUF" {
            return Err(broken("it is not a GGUF file"));
        }
        let version = u32::from_le_bytes(file.bytes()?);
        if !(2..=3).contains(&version) {
            return Err(broken(format!("it is of version {version}, and only 2 and 3 are read")));
        }
        let _tensors = file.number()?;
        let fields = file.number()?;
        if fields > MAX_FIELDS {
            return Err(broken(format!("it has {fields} fields, and at most {MAX_FIELDS} are read")));
        }
        let (mut source, mut bos, mut eos, mut tokens) = (None, None, None, None);
        for _ in 0..fields {
            let name = file.text(MAX_NAME)?;
            let kind = u32::from_le_bytes(file.bytes()?);
            match (name.as_str(), kind) {
                ("tokenizer.chat_template", STRING) => {
                    let most = u64::try_from(MAX_SOURCE).unwrap_or(u64::MAX);
                    source = Some(file.text(most)?);
                }
                ("tokenizer.ggml.bos_token_id", UINT32) => bos = Some(u32::from_le_bytes(file.bytes()?)),
                ("tokenizer.ggml.eos_token_id", UINT32) => eos = Some(u32::from_le_bytes(file.bytes()?)),
                ("tokenizer.ggml.tokens", ARRAY) => {
                    tokens = Some(file.file.stream_position().map_err(unreadable)?);
                    file.skip(kind)?;
                }
                _ => file.skip(kind)?,
            }
        }
        // What is passed over may lie behind the end.
        let end = file.file.stream_position().map_err(unreadable)?;
        if end > file.file.seek(SeekFrom::End(0)).map_err(unreadable)? {
            return Err(broken("it ends too early"));
        }
        let Some(source) = source else {
            return Err(broken("it has no chat template; give one as a .jinja file"));
        };
        let mut token = |id: Option<u32>| match (tokens, id) {
            (Some(place), Some(id)) => file.token(place, id),
            _ => Ok(None),
        };
        Ok(Self { source, bos_token: token(bos)?, eos_token: token(eos)? })
    }
}

const UINT32: u32 = 4;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// The size of a value in bytes, where its type has one.
fn size_of(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

fn broken(what: impl std::fmt::Display) -> TemplateError {
    TemplateError::Gguf(what.to_string())
}

fn unreadable(error: std::io::Error) -> TemplateError {
    match error.kind() {
        ErrorKind::UnexpectedEof => broken("it ends too early"),
        _ => broken(error),
    }
}

struct File<'f, F> {
    file: &'f mut F,
    /// How many texts of arrays were passed over.
    texts: u64,
}

impl<F: BufRead + Seek> File<'_, F> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], TemplateError> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64, TemplateError> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn text(&mut self, most: u64) -> Result<String, TemplateError> {
        let length = self.number()?;
        if length > most {
            return Err(broken(format!("it has a text of {length} bytes where at most {most} are read")));
        }
        let mut bytes = Vec::new();
        let read = Read::take(&mut *self.file, length).read_to_end(&mut bytes).map_err(unreadable)?;
        if u64::try_from(read).ok() != Some(length) {
            return Err(broken("it ends too early"));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn skip_bytes(&mut self, count: u64) -> Result<(), TemplateError> {
        let count = i64::try_from(count).map_err(|_| broken("a length in it is too large"))?;
        self.file.seek_relative(count).map_err(unreadable)
    }

    fn skip(&mut self, kind: u32) -> Result<(), TemplateError> {
        match (kind, size_of(kind)) {
            (_, Some(size)) => self.skip_bytes(size),
            (STRING, _) => {
                let length = self.number()?;
                self.skip_bytes(length)
            }
            (ARRAY, _) => {
                let inner = u32::from_le_bytes(self.bytes()?);
                let count = self.number()?;
                match size_of(inner) {
                    Some(size) => self.skip_bytes(size.saturating_mul(count)),
                    None if inner == STRING => {
                        self.texts = self.texts.saturating_add(count);
                        if self.texts > MAX_TEXTS {
                            return Err(broken(format!("it has an array of {count} texts")));
                        }
                        (0..count).try_for_each(|_| self.skip(STRING))
                    }
                    None => Err(broken(format!("it has an array of values of the type {inner}"))),
                }
            }
            _ => Err(broken(format!("it has a value of the type {kind}"))),
        }
    }

    /// The text of a token, out of the array at that place.
    fn token(&mut self, place: u64, id: u32) -> Result<Option<String>, TemplateError> {
        self.file.seek(SeekFrom::Start(place)).map_err(unreadable)?;
        let inner = u32::from_le_bytes(self.bytes()?);
        let count = self.number()?;
        if inner != STRING || u64::from(id) >= count {
            return Ok(None);
        }
        (0..id).try_for_each(|_| self.skip(STRING))?;
        self.text(MAX_NAME).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&u64::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat()
    }

    fn field(name: &str, kind: u32, value: &[u8]) -> Vec<u8> {
        [&text(name)[..], &kind.to_le_bytes(), value].concat()
    }

    fn texts(values: &[&str]) -> Vec<u8> {
        let values: Vec<u8> = values.iter().flat_map(|value| text(value)).collect();
        [&STRING.to_le_bytes()[..], &3_u64.to_le_bytes(), &values].concat()
    }

    fn file(fields: &[Vec<u8>]) -> Vec<u8> {
        let count = u64::try_from(fields.len()).unwrap();
        [&b"GGUF"[..], &3_u32.to_le_bytes(), &7_u64.to_le_bytes(), &count.to_le_bytes(), &fields.concat()]
            .concat()
    }

    fn whole() -> Vec<u8> {
        file(&[
            field("general.name", STRING, &text("tiny")),
            field(
                "tokenizer.ggml.scores",
                ARRAY,
                &[&6_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &[0; 8]].concat(),
            ),
            field("tokenizer.ggml.eos_token_id", UINT32, &2_u32.to_le_bytes()),
            field("tokenizer.ggml.tokens", ARRAY, &texts(&["<unk>", "<s>", "</s>"])),
            field("tokenizer.ggml.bos_token_id", UINT32, &1_u32.to_le_bytes()),
            field("tokenizer.ggml.add_bos_token", 7, &[1]),
            field("tokenizer.chat_template", STRING, &text("{{ bos_token }}é")),
            field("x", 12, &[0; 8]),
        ])
    }

    #[test]
    fn b14_the_template_of_a_model_file_is_read() {
        let read = GgufTemplate::read(&mut Cursor::new(whole())).unwrap();
        let (bos_token, eos_token) = (Some("<s>".to_owned()), Some("</s>".to_owned()));
        assert_eq!(read, GgufTemplate { source: "{{ bos_token }}é".into(), bos_token, eos_token });
    }

    #[test]
    fn b14_texts_are_passed_over_up_to_a_bound_in_all_arrays_together() {
        // Empty ones, which take the most work for their size.
        let count = MAX_TEXTS / 8 + 1;
        let mut array = STRING.to_le_bytes().to_vec();
        array.extend(count.to_le_bytes());
        array.resize(array.len() + usize::try_from(count * 8).unwrap(), 0);
        let whole = file(&vec![field("x", ARRAY, &array); 8]);
        let error = GgufTemplate::read(&mut Cursor::new(whole)).unwrap_err().to_string();
        assert!(error.contains("an array of 1000001 texts"), "{error}");
    }

    #[test]
    fn b14_a_broken_model_file_is_refused_wherever_it_breaks() {
        let whole = whole();
        for end in 0..whole.len() {
            let read = GgufTemplate::read(&mut Cursor::new(&whole[..end]));
            assert!(matches!(read, Err(TemplateError::Gguf(_))), "cut at {end}: {read:?}");
        }
        let huge = u64::MAX.to_le_bytes();
        for (field, said) in [
            (field("x", STRING, &huge), "too large"),
            (field("tokenizer.chat_template", STRING, &huge), "at most"),
            (field("x", ARRAY, &[&UINT32.to_le_bytes()[..], &huge].concat()), "too large"),
            (field("x", ARRAY, &[&STRING.to_le_bytes()[..], &huge].concat()), "an array of"),
            (field("x", 99, &[]), "the type 99"),
            (field("x", UINT32, &[0; 4]), "no chat template"),
        ] {
            let error = GgufTemplate::read(&mut Cursor::new(file(&[field]))).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
