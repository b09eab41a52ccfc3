"""What every room may know: names, labels, outputs, files and the workbook's folders."""
