#!/usr/bin/env python3
"""Makes heading.woff2 and heading.ttf out of Zilla Slab Bold: see README.md. Called by subset.sh.

    subset.py ZillaSlab_700Bold.ttf FOLDER
"""

import hashlib
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont, newTable
from fontTools.ttLib.reorderGlyphs import reorderGlyphs
from fontTools.ttLib.tables._c_m_a_p import CmapSubtable
from fontTools.ttLib.tables._k_e_r_n import KernTable_format_0

# What the subset was designed against: another file may have other names for its glyphs.
ORIGINAL = "ec5a3ec1bccca134e1cf0de2bdbd8f88b35c0756ad3997460a55f6da6c07bbf4"

FAMILY = "Unionhall Heading"

LATIN = [*range(0x20, 0x7F), *range(0xA0, 0x100)]
LATIN_EXTENDED_A = list(range(0x100, 0x180))
PUNCTUATION = [ord(char) for char in "‘’‚“”„–—•…‹›€←→"]

# What English and Spanish are written with, and from how many thousandths of an em on a pair is kerned on the card:
# within that, and else. All 25,000 pairs would weigh five times what the outlines do.
COMMON = [*range(0x20, 0x7F), *(ord(char) for char in "¿¡ÁÉÍÓÚÜÑáéíóúüñ‘’“”–—…€")]
KERN_COMMON, KERN_OTHER = 12, 54


def with_lining_figures(font):
    """The original's figures are old-style, which looks like a mistake in a price: let the lining ones be the default."""
    lining = {}
    gsub = font["GSUB"].table
    for record in gsub.FeatureList.FeatureRecord:
        if record.FeatureTag == "lnum":
            for index in record.Feature.LookupListIndex:
                for table in gsub.LookupList.Lookup[index].SubTable:
                    lining.update({k: v for k, v in table.mapping.items() if v == f"{k}.pnum_lnum"})
    for table in font["cmap"].tables:
        table.cmap = {code: lining.get(name, name) for code, name in table.cmap.items()}


def renamed(font):
    """Keeps who made it and on which terms; the family's name is our own."""
    version = font["name"].getDebugName(5)
    names = font["name"]
    kept = (0, 7, 8, 11, 13, 14)
    names.names = [record for record in names.names if record.platformID == 3 and record.nameID in kept]
    for name_id, text in [
        (1, FAMILY),
        (2, "Bold"),
        (3, f"{FAMILY} Bold, from Zilla Slab Bold {version}"),
        (4, f"{FAMILY} Bold"),
        (5, version.split(";")[0]),
        (6, FAMILY.replace(" ", "") + "-Bold"),
        (10, "A subset of Zilla Slab Bold with lining figures."),
    ]:
        names.setName(text, name_id, 3, 1, 0x409)


def subsetted(path, codes, features):
    options = subset.Options()
    options.hinting = False
    options.layout_features = features
    options.name_IDs = ["*"]
    options.notdef_outline = True
    options.glyph_names = False
    options.recalc_timestamp = False
    font = subset.load_font(path, options, dontLoadGlyphNames=False)
    with_lining_figures(font)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    renamed(font)
    return font


def kerning(font):
    """What GPOS says of a pair, as a function."""
    pairs, classes = {}, []
    for lookup in font["GPOS"].table.LookupList.Lookup:
        for table in lookup.SubTable:
            if table.Format == 1:
                for first, row in zip(table.Coverage.glyphs, table.PairSet):
                    for record in row.PairValueRecord:
                        pairs[first, record.SecondGlyph] = record.Value1.XAdvance
            else:
                classes.append(table)

    def of(first, second):
        if (first, second) in pairs:
            return pairs[first, second]
        for table in classes:
            if first in table.Coverage.glyphs:
                row = table.Class1Record[table.ClassDef1.classDefs.get(first, 0)]
                value = row.Class2Record[table.ClassDef2.classDefs.get(second, 0)].Value1
                return value.XAdvance if value else 0
        return 0

    return of


def plain(font):
    """As little as card/face.rs reads: one kind of character map, and pairs of glyphs to kern, in the glyphs' order."""
    codes = font.getBestCmap()
    common = {codes[code] for code in COMMON}
    names = list(dict.fromkeys(codes.values()))
    of = kerning(font)
    table = KernTable_format_0(apple=False)
    table.coverage, table.tupleIndex, table.kernTable = 1, None, {}
    for first in names:
        for second in names:
            value = of(first, second)
            if abs(value) >= (KERN_COMMON if {first, second} <= common else KERN_OTHER):
                table.kernTable[first, second] = value
    assert len(table.kernTable) < 10_000, "the table's length is told in 16 bits"
    font["kern"] = newTable("kern")
    font["kern"].version, font["kern"].kernTables = 0, [table]
    for tag in ("GPOS", "GSUB", "gasp"):
        if tag in font:
            del font[tag]
    for name in font.getGlyphOrder():
        glyph = font["glyf"][name]
        assert not glyph.isComposite(), "face.rs reads outlines alone"
        starts = [0, *(end + 1 for end in glyph.endPtsOfContours[:-1])] if glyph.numberOfContours else []
        assert all(glyph.flags[start] & 1 for start in starts), "face.rs wants contours to begin on the curve"
    # In the characters' order, so that the map is of few runs.
    reorderGlyphs(font, [".notdef", *dict.fromkeys(codes[code] for code in sorted(codes))])
    map_ = CmapSubtable.newSubtable(12)
    map_.platformID, map_.platEncID, map_.language, map_.cmap = 3, 10, 0, codes
    font["cmap"].tables = [map_]


def main(original, folder):
    digest = hashlib.sha256(Path(original).read_bytes()).hexdigest()
    if digest != ORIGINAL:
        sys.exit(f"{original} is not the file that this was made for: its SHA-256 is {digest}")
    codes = LATIN + LATIN_EXTENDED_A + PUNCTUATION
    web = subsetted(original, codes, ["kern", "liga", "tnum", "pnum"])
    web.flavor = "woff2"
    web.save(Path(folder) / "heading.woff2")
    card = subsetted(original, codes, ["kern"])
    plain(card)
    card.save(Path(folder) / "heading.ttf")


if __name__ == "__main__":
    main(*sys.argv[1:])
