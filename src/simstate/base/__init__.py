"""What everything else stands on: errors, checked values, ids, files."""
