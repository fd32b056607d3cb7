//! The tables in Markdown and in the HTML that it becomes.

/// Puts each table into a box that scrolls, also by keyboard. Texts escape `<` and addresses encode it.
pub(super) fn with_scrolling_tables(html: &str) -> String {
    const BOX: &str = "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">";
    html.replace("<table>", &format!("{BOX}<table>")).replace("</table>", "</table></div>")
}

/// Returns an upper bound of the number of table cells: the number of lines times the width of the widest
/// line.
pub(super) fn count_cells(markdown: &str) -> usize {
    let lines = || markdown.split(['\n', '\r']).filter(|line| !line.is_empty());
    let widest = lines().map(|line| line.matches('|').count() + 1).max();
    lines().count() * widest.unwrap_or(0)
}
