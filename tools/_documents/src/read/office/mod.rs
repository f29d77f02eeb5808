//! Documents of Word, PowerPoint, Excel and LibreOffice: ZIP files of XML.

mod sheet;
mod writer;
mod xml;

use std::{
    collections::HashMap,
    io::{Cursor, Read},
};

use serde::{Deserialize, Serialize};
use toolrack_web::Line;
use zip::ZipArchive;

use super::{MAX_LINES, Text, csv, too_many_lines};
use sheet::{Sheet, strings};
use writer::{Writer, headings};
use xml::{damaged, elements, value};

/// A file with more parts is none of these.
const MAX_PARTS: usize = 10_000;
/// So much XML is unpacked of it, in bytes.
const MAX_XML: u64 = 256 * 1024 * 1024;

/// What stands in a document.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Contents {
    /// Paragraphs and rows of tables: the number of each, or of its slide; the level of a heading; whether it is a row; the text.
    Lines(Vec<(u32, u8, bool, String)>),
    /// Sheets: the name, the number of empty rows before the first, and the others as CSV.
    Sheets(Vec<(String, u32, String)>),
}

/// Makes a text of it.
pub(super) fn text(contents: Contents) -> Result<Text, String> {
    match contents {
        Contents::Lines(lines) if 2 * lines.len() > MAX_LINES => Err(too_many_lines()),
        Contents::Lines(lines) => {
            let line = |(number, heading, verbatim, text)| Line { number, heading, verbatim, text };
            // Each paragraph is one line, and ends.
            let lines = lines.into_iter().map(line).flat_map(|line| {
                let end = (!line.verbatim).then(|| Line::text(line.number, ""));
                [Some(line), end].into_iter().flatten()
            });
            let lines: Vec<Line> = lines.collect();
            let headings = lines.iter().filter(|line| line.heading > 0);
            let title = headings.min_by_key(|line| line.heading).map(|line| line.text.clone());
            Ok(Text { title, lines, ..Text::default() })
        }
        Contents::Sheets(sheets) => {
            let (mut whole, mut length) = (Text::default(), 0);
            for (name, before, table) in sheets {
                let mut lines = csv::table(&table, &name, b',')?.lines;
                lines.iter_mut().for_each(|line| line.number += before);
                length += lines.iter().map(|line| line.text.len()).sum::<usize>();
                if length > csv::MAX_TEXT {
                    return Err(format!(
                        "its sheets have more than {} MiB of text; split it",
                        csv::MAX_TEXT >> 20
                    ));
                }
                whole.lines.extend(lines);
            }
            Ok(whole)
        }
    }
}

/// Reads a file, by what it has in it.
pub(super) fn parsed(bytes: Vec<u8>) -> Result<Contents, String> {
    let mut parts = Parts::open(bytes)?;
    if let Some(body) = parts.read("word/document.xml")? {
        let styles = parts.read("word/styles.xml")?.unwrap_or_default();
        let mut writer = Writer { headings: headings(&styles)?, ..Writer::default() };
        writer.write(&body)?;
        return Ok(Contents::Lines(writer.lines));
    }
    if let Some(slides) = parts.named("ppt/", "presentation.xml", "sldId")? {
        let mut lines = Vec::new();
        for (number, (_, part)) in (1..).zip(slides) {
            let mut writer = Writer { slide: Some(number), ..Writer::default() };
            writer.write(&parts.read(&part)?.unwrap_or_default())?;
            lines.append(&mut writer.lines);
        }
        return Ok(Contents::Lines(lines));
    }
    if let Some(sheets) = parts.named("xl/", "workbook.xml", "sheet")? {
        let shared = strings(&parts.read("xl/sharedStrings.xml")?.unwrap_or_default())?;
        let mut tables = Vec::new();
        for (name, part) in sheets {
            let sheet = Sheet::read(&parts.read(&part)?.unwrap_or_default(), &shared)?;
            tables.extend(sheet.into_iter().map(|(_, before, table)| (name.clone(), before, table)));
        }
        return Ok(Contents::Sheets(tables));
    }
    let body = parts.read("content.xml")?.ok_or("it is no document of an office program")?;
    if body.contains("<office:spreadsheet") {
        return Ok(Contents::Sheets(Sheet::read(&body, &[])?));
    }
    let is_presentation = body.contains("<office:presentation");
    let mut writer =
        Writer { is_open_document: true, slide: is_presentation.then_some(0), ..Writer::default() };
    writer.write(&body)?;
    Ok(Contents::Lines(writer.lines))
}

/// The parts of a file.
struct Parts {
    archive: ZipArchive<Cursor<Vec<u8>>>,
    /// So much may still be unpacked.
    left: u64,
}

impl Parts {
    fn open(bytes: Vec<u8>) -> Result<Self, String> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(&error))?;
        match archive.len() {
            ..=MAX_PARTS => Ok(Self { archive, left: MAX_XML }),
            _ => Err(format!("it has more than {MAX_PARTS} parts")),
        }
    }

    /// A part, if there is such.
    fn read(&mut self, name: &str) -> Result<Option<String>, String> {
        if self.archive.index_for_name(name).is_none() {
            return Ok(None);
        }
        let part = self.archive.by_name(name).map_err(|error| damaged(&error))?;
        let mut xml = Vec::new();
        let size = part.take(self.left + 1).read_to_end(&mut xml).map_err(|error| damaged(&error))?;
        self.left = u64::try_from(size)
            .ok()
            .and_then(|size| self.left.checked_sub(size))
            .ok_or_else(|| format!("it has more than {} MiB of text; split it", MAX_XML >> 20))?;
        Ok(Some(String::from_utf8_lossy(&xml).into_owned()))
    }

    /// The names and the parts that an index lists, in its order.
    fn named(
        &mut self,
        folder: &str,
        index: &str,
        element: &str,
    ) -> Result<Option<Vec<(String, String)>>, String> {
        let Some(list) = self.read(&format!("{folder}{index}"))? else { return Ok(None) };
        let relations = self.read(&format!("{folder}_rels/{index}.rels"))?.unwrap_or_default();
        let mut targets = HashMap::new();
        elements(&relations, |name, start| {
            if let ("Relationship", Some(id), Some(target)) =
                (name, value(start, "Id"), value(start, "Target"))
            {
                let part =
                    target.strip_prefix('/').map_or_else(|| format!("{folder}{target}"), str::to_owned);
                targets.insert(id, part);
            }
        })?;
        let mut named = Vec::new();
        elements(&list, |name, start| {
            let part = value(start, "r:id").and_then(|id| targets.get(&id));
            if let Some(part) = part.filter(|_| name == element) {
                named.push((value(start, "name").unwrap_or_default(), part.clone()));
            }
        })?;
        Ok(Some(named))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::{
        sheet::{MAX_CELLS, MAX_ROWS},
        *,
    };

    fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, xml) in parts {
            archive.start_file(*name, SimpleFileOptions::default()).unwrap();
            archive.write_all(xml.as_bytes()).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    /// The lines, each with its number and its heading.
    fn shown(parts: &[(&str, &str)]) -> Vec<String> {
        let text = text(parsed(zipped(parts)).unwrap()).unwrap();
        let lines = text.lines.into_iter().filter(|line| !line.text.is_empty());
        lines
            .map(|line| format!("{}{} {}", "#".repeat(line.heading.into()), line.number, line.text))
            .collect()
    }

    const WORD: [(&str, &str); 2] = [
        (
            "word/styles.xml",
            "<w:styles><w:style w:styleId='berschrift2'><w:name w:val='heading 2'/></w:style>\
             <w:style w:styleId='Titel'><w:name w:val='Title'/></w:style></w:styles>",
        ),
        (
            "word/document.xml",
            "<?xml version='1.0'?><w:document><w:body>\
             <w:p><w:pPr><w:pStyle w:val='Titel'/></w:pPr><w:r><w:t>Tea &amp; more</w:t></w:r></w:p>\
             <w:p><w:pPr><w:pStyle w:val='berschrift2'/></w:pPr><w:r><w:t>Gr&#252;n</w:t></w:r></w:p>\
             <w:p><w:r><w:t>Steeped at </w:t></w:r><w:r><w:t>75</w:t><w:tab/><w:t>degrees.</w:t><w:delText>no</w:delText></w:r></w:p>\
             <w:tbl><w:tr><w:tc><w:p><w:r><w:t>tea</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>3</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
             <w:p><w:r><w:t>Before</w:t><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>Box</w:t></w:r></w:p></w:txbxContent></mc:Choice>\
             <mc:Fallback><w:p><w:r><w:t>Box</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent></w:r></w:p>\
             </w:body></w:document>",
        ),
    ];

    #[test]
    fn p6_word_is_read_by_headings_paragraphs_and_rows() {
        let expected =
            ["#1 Tea & more", "###2 Grün", "3 Steeped at 75 degrees.", "5 tea | 3", "6 Before", "7 Box"];
        assert_eq!(shown(&WORD), expected);
        let odt = "<office:document-content><office:body><office:text>\
            <text:tracked-changes><text:p>no</text:p></text:tracked-changes>\
            <text:h text:outline-level='2'>Gr\u{fc}n</text:h>\n<text:p>Steeped at<text:s/>75 <text:span>degrees</text:span>.</text:p>\
            <table:table><table:table-row><table:table-cell><text:p>tea</text:p></table:table-cell>\
            <table:table-cell><text:p>3</text:p></table:table-cell></table:table-row></table:table>\
            </office:text></office:body></office:document-content>";
        assert_eq!(shown(&[("content.xml", odt)]), ["##1 Grün", "2 Steeped at 75 degrees.", "4 tea | 3"]);
    }

    #[test]
    fn p6_slides_are_read_in_the_order_in_which_they_are_shown() {
        let slide = |title: &str, text: &str| {
            format!(
                "<p:sld><p:sp><p:nvPr><p:ph type='title'/></p:nvPr><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:sp>\
                 <p:sp><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sp></p:sld>"
            )
        };
        let parts = [
            (
                "ppt/presentation.xml",
                "<p:sldIdLst><p:sldId id='1' r:id='b'/><p:sldId id='2' r:id='a'/></p:sldIdLst>",
            ),
            (
                "ppt/_rels/presentation.xml.rels",
                "<R><Relationship Id='a' Target='slides/slide1.xml'/><Relationship Id='b' Target='/ppt/slides/slide2.xml'/></R>",
            ),
            ("ppt/slides/slide1.xml", &slide("Black", "Boiling.")),
            ("ppt/slides/slide2.xml", &slide("Green", "75 degrees.")),
        ];
        assert_eq!(shown(&parts), ["#1 Green", "1 75 degrees.", "#2 Black", "2 Boiling."]);
        let odp = "<office:presentation><draw:page><draw:frame presentation:class='title'><text:p>Green</text:p></draw:frame>\
            </draw:page><draw:page><draw:frame><text:p>Boiling.</text:p></draw:frame></draw:page></office:presentation>";
        assert_eq!(shown(&[("content.xml", odp)]), ["#1 Green", "2 Boiling."]);
    }

    #[test]
    fn p6_each_row_of_a_sheet_names_its_columns() {
        let parts = [
            ("xl/workbook.xml", "<sheets><sheet name='Prices' sheetId='1' r:id='x'/></sheets>"),
            ("xl/_rels/workbook.xml.rels", "<R><Relationship Id='x' Target='worksheets/sheet1.xml'/></R>"),
            (
                "xl/sharedStrings.xml",
                "<sst><si><t>drink</t></si><si><r><t>green </t></r><r><t>tea</t></r></si></sst>",
            ),
            (
                "xl/worksheets/sheet1.xml",
                "<sheetData><row r='2'><c r='A2' t='s'><v>0</v></c><c r='B2' t='inlineStr'><is><t>price, in euros</t></is></c></row>\
                 <row r='4'><c r='A4' t='s'><v>1</v></c><c r='B4'><f>1+2</f><v>3</v></c></row><row r='5'><c r='D5'><v>7</v></c></row></sheetData>",
            ),
        ];
        assert_eq!(
            shown(&parts),
            [
                "#2 Prices",
                "2 Columns: drink, price, in euros",
                "4 drink: green tea; price, in euros: 3",
                "5 column 4: 7"
            ]
        );
        let ods = "<office:spreadsheet><table:table table:name='Prices'><table:table-row>\
            <table:table-cell><text:p>drink</text:p></table:table-cell><table:table-cell><text:p>price</text:p></table:table-cell>\
            <table:table-cell table:number-columns-repeated='16382'/></table:table-row>\
            <table:table-row><table:table-cell><text:p>tea</text:p></table:table-cell><table:table-cell><text:p>3</text:p></table:table-cell>\
            </table:table-row></table:table></office:spreadsheet>";
        assert_eq!(
            shown(&[("content.xml", ods)]),
            ["#1 Prices", "1 Columns: drink, price", "2 drink: tea; price: 3"]
        );
    }

    /// Written by python-docx, python-pptx, openpyxl and odfpy.
    #[test]
    fn p6_what_other_programs_write_is_read() {
        let read = |bytes: &[u8]| {
            let text = text(parsed(bytes.to_vec()).unwrap()).unwrap();
            let lines = text.lines.into_iter().filter(|line| !line.text.is_empty());
            lines
                .map(|line| format!("{}{} {}", "#".repeat(line.heading.into()), line.number, line.text))
                .collect::<Vec<_>>()
        };
        const GREEN: &str = "Green tea is steeped at 75 degrees.";
        let docx = read(include_bytes!("../../../tests/data/office/tea.docx"));
        assert_eq!(docx, ["#1 Tea", "##2 Green", &format!("3 {GREEN}"), "5 drink | price", "7 tea | 3"]);
        let pptx = read(include_bytes!("../../../tests/data/office/tea.pptx"));
        assert_eq!(pptx, ["#1 Green", &format!("1 {GREEN}"), "#2 Black", "2 Black tea wants boiling water."]);
        let odt = read(include_bytes!("../../../tests/data/office/tea.odt"));
        assert_eq!(odt, ["#1 Tea", &format!("2 {GREEN}")]);
        let xlsx = read(include_bytes!("../../../tests/data/office/prices.xlsx"));
        let rows = [
            "#1 Prices",
            "1 Columns: drink, price",
            "2 drink: green tea; price: 3",
            "3 drink: espresso; price: 2.5",
        ];
        assert_eq!(xlsx, rows);
    }

    #[test]
    fn k12_an_office_document_is_unpacked_to_so_much_and_no_more() {
        let mut parts = Parts::open(zipped(&[("a.xml", &"x".repeat(60))])).unwrap();
        assert_eq!(parts.left, MAX_XML);
        parts.left = 100;
        assert!(parts.read("a.xml").unwrap().is_some() && parts.left == 40);
        assert!(parts.read("a.xml").unwrap_err().contains("256 MiB"));
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for number in 0..=MAX_PARTS {
            archive.start_file(number.to_string(), SimpleFileOptions::default()).unwrap();
        }
        let refused = parsed(archive.finish().unwrap().into_inner()).unwrap_err();
        assert!(refused.contains("10000 parts"), "{refused}");
        // However deep it nests.
        let deep = format!("{}<w:p><w:r><w:t>Tea", "<w:tbl><w:tr><w:tc>".repeat(200_000));
        assert!(parsed(zipped(&[("word/document.xml", &deep)])).is_ok());
        let sheet = |row: &str| Sheet::read(row, &[]).unwrap();
        assert_eq!(sheet("<row><c r='ZZZZ9'><v>1</v></c></row>"), []);
        let far = sheet("<row r='4294967295'><c r='XFD9'><v>1</v></c></row>");
        assert_eq!((far[0].1 as usize, far[0].2.len()), (MAX_ROWS, MAX_CELLS + 1));
    }

    #[test]
    fn k22_a_damaged_office_document_is_refused_or_gives_what_is_left() {
        let whole = zipped(&WORD);
        assert!(parsed(b"PK\x03\x04".to_vec()).is_err() && parsed(zipped(&[("a", "b")])).is_err());
        for at in (0..whole.len()).step_by(7) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x15;
            let _ = parsed(damaged).map(text);
            let _ = parsed(whole[..at].to_vec());
        }
    }
}
