//! Founding, committing and reading what changed.

use super::*;

#[test]
fn founded_workspace_has_the_rows_and_the_first_commit() {
    let (database, position) = Database::with(&[put("a", "1"), put("b", "2")]);
    assert_eq!(position.seq, 1);
    let head = database.origin.head().expect("an answer").expect("a workspace");
    assert_eq!((head.position, head.horizon), (position, 1));
    assert_eq!(head.format, crate::store::schema::FORMAT);
    let (rows, found) = since(&database.origin, Position::NONE).expect("an answer");
    assert_eq!((rows, found), (vec![put("a", "1"), put("b", "2")], position));
    assert_eq!(since(&database.origin, position).expect("an answer"), (Vec::new(), position));
}
