//! Character classes by name: Perl's, POSIX's and Unicode's as Go knows them
//! (`regexp/syntax/perl_groups.go`, `unicode/tables.go`).

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// Every character.
pub(super) fn any() -> ClassUnicode {
    range('\0', char::MAX)
}

/// The characters from `low` to `high`.
pub(super) fn range(low: char, high: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(low, high)])
}

/// The characters between two code points, surrogates left out.
pub(super) fn code_points(low: u32, high: u32) -> ClassUnicode {
    let low = (low..=high).find_map(char::from_u32);
    let high = char::from_u32(high).or(Some('\u{d7ff}'));
    match (low, high) {
        (Some(low), Some(high)) if low <= high => range(low, high),
        _ => ClassUnicode::empty(),
    }
}

fn bytes(ranges: &[(u8, u8)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(a, b)| ClassUnicodeRange::new(a.into(), b.into())))
}

const DIGIT: &[(u8, u8)] = &[(b'0', b'9')];
const SPACE: &[(u8, u8)] = &[(b'\t', b'\n'), (0x0c, b'\r'), (b' ', b' ')];
const WORD: &[(u8, u8)] = &[(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')];

/// The class of `\d` and the like, and whether the letter negates it.
pub(super) fn perl(letter: u8) -> Option<(ClassUnicode, bool)> {
    let ranges = match letter.to_ascii_lowercase() {
        b'd' => DIGIT,
        b's' => SPACE,
        b'w' => WORD,
        _ => return None,
    };
    Some((bytes(ranges), letter.is_ascii_uppercase()))
}

/// The class of `[:name:]`, and whether the name negates it.
pub(super) fn posix(name: &[u8]) -> Option<(ClassUnicode, bool)> {
    let (name, negated) = name.strip_prefix(b"^").map_or((name, false), |name| (name, true));
    let ranges: &[(u8, u8)] = match name {
        b"alnum" => &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')],
        b"alpha" => &[(b'A', b'Z'), (b'a', b'z')],
        b"ascii" => &[(0, 0x7f)],
        b"blank" => &[(b'\t', b'\t'), (b' ', b' ')],
        b"cntrl" => &[(0, 0x1f), (0x7f, 0x7f)],
        b"digit" => DIGIT,
        b"graph" => &[(b'!', b'~')],
        b"lower" => &[(b'a', b'z')],
        b"print" => &[(b' ', b'~')],
        b"punct" => &[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')],
        b"space" => &[(b'\t', b'\r'), (b' ', b' ')],
        b"upper" => &[(b'A', b'Z')],
        b"word" => WORD,
        b"xdigit" => &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')],
        _ => return None,
    };
    Some((bytes(ranges), negated))
}

/// The general categories of Go's `unicode.Categories`.
const CATEGORIES: &[&str] = &[
    "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Lc", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me",
    "Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk",
    "Sm", "So", "Z", "Zl", "Zp", "Zs",
];

/// Go's `unicode.CategoryAliases`, names folded as Go folds them.
const ALIASES: &[(&str, &str)] = &[
    ("Casedletter", "Lc"),
    ("Closepunctuation", "Pe"),
    ("Cntrl", "Cc"),
    ("Combiningmark", "M"),
    ("Connectorpunctuation", "Pc"),
    ("Control", "Cc"),
    ("Currencysymbol", "Sc"),
    ("Dashpunctuation", "Pd"),
    ("Decimalnumber", "Nd"),
    ("Digit", "Nd"),
    ("Enclosingmark", "Me"),
    ("Finalpunctuation", "Pf"),
    ("Format", "Cf"),
    ("Initialpunctuation", "Pi"),
    ("Letter", "L"),
    ("Letternumber", "Nl"),
    ("Lineseparator", "Zl"),
    ("Lowercaseletter", "Ll"),
    ("Mark", "M"),
    ("Mathsymbol", "Sm"),
    ("Modifierletter", "Lm"),
    ("Modifiersymbol", "Sk"),
    ("Nonspacingmark", "Mn"),
    ("Number", "N"),
    ("Openpunctuation", "Ps"),
    ("Other", "C"),
    ("Otherletter", "Lo"),
    ("Othernumber", "No"),
    ("Otherpunctuation", "Po"),
    ("Othersymbol", "So"),
    ("Paragraphseparator", "Zp"),
    ("Privateuse", "Co"),
    ("Punct", "P"),
    ("Punctuation", "P"),
    ("Separator", "Z"),
    ("Spaceseparator", "Zs"),
    ("Spacingmark", "Mc"),
    ("Surrogate", "Cs"),
    ("Symbol", "S"),
    ("Titlecaseletter", "Lt"),
    ("Unassigned", "Cn"),
    ("Uppercaseletter", "Lu"),
];

/// Those of Go's `unicode.Scripts` whose name is one word, so that folding a name as Go
/// does finds them; the keys with a second capital (`Old_Italic`) are never found by it.
const SCRIPTS: &[&str] = &[
    "Adlam",
    "Ahom",
    "Arabic",
    "Armenian",
    "Avestan",
    "Balinese",
    "Bamum",
    "Batak",
    "Bengali",
    "Bhaiksuki",
    "Bopomofo",
    "Brahmi",
    "Braille",
    "Buginese",
    "Buhid",
    "Carian",
    "Chakma",
    "Cham",
    "Cherokee",
    "Chorasmian",
    "Common",
    "Coptic",
    "Cuneiform",
    "Cypriot",
    "Cyrillic",
    "Deseret",
    "Devanagari",
    "Dogra",
    "Duployan",
    "Elbasan",
    "Elymaic",
    "Ethiopic",
    "Georgian",
    "Glagolitic",
    "Gothic",
    "Grantha",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hanunoo",
    "Hatran",
    "Hebrew",
    "Hiragana",
    "Inherited",
    "Javanese",
    "Kaithi",
    "Kannada",
    "Katakana",
    "Kawi",
    "Kharoshthi",
    "Khmer",
    "Khojki",
    "Khudawadi",
    "Lao",
    "Latin",
    "Lepcha",
    "Limbu",
    "Lisu",
    "Lycian",
    "Lydian",
    "Mahajani",
    "Makasar",
    "Malayalam",
    "Mandaic",
    "Manichaean",
    "Marchen",
    "Medefaidrin",
    "Miao",
    "Modi",
    "Mongolian",
    "Mro",
    "Multani",
    "Myanmar",
    "Nabataean",
    "Nandinagari",
    "Newa",
    "Nko",
    "Nushu",
    "Ogham",
    "Oriya",
    "Osage",
    "Osmanya",
    "Palmyrene",
    "Phoenician",
    "Rejang",
    "Runic",
    "Samaritan",
    "Saurashtra",
    "Sharada",
    "Shavian",
    "Siddham",
    "Sinhala",
    "Sogdian",
    "Soyombo",
    "Sundanese",
    "Syriac",
    "Tagalog",
    "Tagbanwa",
    "Takri",
    "Tamil",
    "Tangsa",
    "Tangut",
    "Telugu",
    "Thaana",
    "Thai",
    "Tibetan",
    "Tifinagh",
    "Tirhuta",
    "Toto",
    "Ugaritic",
    "Vai",
    "Vithkuqi",
    "Wancho",
    "Yezidi",
    "Yi",
];

/// The class of `\p{name}`, as Go's Unicode 15.0 has it.
pub(super) fn unicode(name: &[u8]) -> Option<ClassUnicode> {
    let name = canonical(name)?;
    match name.as_str() {
        "Any" => return Some(any()),
        "Ascii" => return Some(range('\0', '\x7f')),
        "Assigned" => {
            let mut class = unicode(b"Cn")?;
            class.negate();
            return Some(class);
        }
        _ => {}
    }
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, category)| *category);
    let category = CATEGORIES.iter().copied().find(|category| *category == name).or(alias);
    if category == Some("Cs") {
        return Some(ClassUnicode::empty());
    }
    let mut class = match category {
        Some("Lc") => {
            let mut cased = table("gc=Ll")?;
            cased.union(&table("gc=Lu")?);
            cased.union(&table("gc=Lt")?);
            cased
        }
        Some(category) => table(&format!("gc={category}"))?,
        None if SCRIPTS.contains(&name.as_str()) => table(&format!("sc={name}"))?,
        None => return None,
    };
    // The tables at hand are newer than Go's: what they add was unassigned.
    let mut newer = any();
    newer.difference(&table("age=15.0")?);
    newer.difference(&table("gc=Cn")?);
    if matches!(category, Some("C" | "Cn")) {
        class.union(&newer);
    } else {
        class.difference(&newer);
    }
    Some(class)
}

/// Go's `canonicalName`: a capital first, then small letters, no separators. `None` for
/// what cannot name a class.
fn canonical(name: &[u8]) -> Option<String> {
    let mut folded = String::new();
    let mut first = true;
    for &byte in name {
        match byte {
            b'_' | b'-' | b' ' => continue,
            _ if first => folded.push(byte.to_ascii_uppercase().into()),
            _ => folded.push(byte.to_ascii_lowercase().into()),
        }
        first = false;
    }
    (!folded.is_empty()).then_some(folded)
}

fn table(property: &str) -> Option<ClassUnicode> {
    let hir = regex_syntax::parse(&format!("\\p{{{property}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        _ => None,
    }
}
