// Columns of values out of the packed block, as docs/view.md draws it.
