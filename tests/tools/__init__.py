"""What developers run to renew committed files: outputs, goldens, the pad."""
