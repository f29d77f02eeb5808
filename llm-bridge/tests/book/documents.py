"""Writes the documents that docs/documents.md speaks of into this folder."""

from pathlib import Path


def pdf(text):
    """A page with one line of text."""
    content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
               "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
               f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"]
    file, places = "%PDF-1.4\n", ""
    for number, what in enumerate(objects, 1):
        places += f"{len(file):010} 00000 n \n"
        file += f"{number} 0 obj\n{what}\nendobj\n"
    return f"{file}xref\n0 6\n0000000000 65535 f \n{places}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{len(file)}\n%%EOF\n"


Path("notes").mkdir()
Path("notes/tea.md").write_text("# Tea\n\n## Green\n\nGreen tea is steeped at 75 degrees.\n")
Path("tea.md").write_text("# Tea\n\n## White\n\nWhite tea is steeped at 80 degrees.\n")
Path("report.pdf").write_text(pdf("Sales of green tea have risen."))
Path("prices.csv").write_text("name,price\nSencha,12\n")
